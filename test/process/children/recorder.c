/* Preloaded into a process, writes down what it asks of the disk for the files of one folder, in the order of asking:
 * what was written where, what was synced, cut and removed. From that a power cut at any moment can be replayed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { OPENED = 1, WRITTEN = 2, SYNCED = 3, CUT = 4, REMOVED = 5, FOLDER_SYNCED = 6 };

/* Followed by `name` bytes of file name and `length` bytes of what was written. */
struct entry {
  uint32_t kind;
  uint32_t name;
  uint64_t offset;
  uint64_t length;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int record = -1;
static char folder[512];

__attribute__((constructor)) static void start(void) {
  const char *to = getenv("RECORD_TO"), *of = getenv("RECORD_FOLDER");
  if (to == NULL || of == NULL) return;
  snprintf(folder, sizeof folder, "%s", of);
  record = (int)syscall(SYS_openat, AT_FDCWD, to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void all(const void *from, size_t length) {
  const char *at = from;
  while (length > 0) {
    ssize_t done = syscall(SYS_write, record, at, length);
    if (done <= 0) _exit(99);
    at += done;
    length -= (size_t)done;
  }
}

static void note(uint32_t kind, const char *name, uint64_t offset, const void *data, uint64_t length) {
  struct entry entry = { kind, (uint32_t)strlen(name), offset, length };
  pthread_mutex_lock(&lock);
  all(&entry, sizeof entry);
  all(name, entry.name);
  if (data != NULL) all(data, length);
  pthread_mutex_unlock(&lock);
}

/* The name within the folder: "" for the folder itself, NULL for everything else, and for the index, which is rebuilt. */
static const char *within(char *path) {
  size_t length = strlen(folder);
  if (record < 0 || strncmp(path, folder, length) != 0) return NULL;
  if (path[length] == '\0') return "";
  if (path[length] != '/') return NULL;
  size_t end = strlen(path);
  if (end > 4 && strcmp(path + end - 4, "-shm") == 0) return NULL;
  return path + length + 1;
}

static const char *name_of(int descriptor, char *path, size_t size) {
  char link[64];
  if (record < 0) return NULL;
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t length = readlink(link, path, size - 1);
  if (length < 0) return NULL;
  path[length] = '\0';
  return within(path);
}

#define REAL(name) static __typeof__(name) *real; if (real == NULL) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)
#define NAMED(descriptor) char path[1024]; const char *name = name_of(descriptor, path, sizeof path)

int open64(const char *file, int flags, ...) {
  REAL(open64);
  va_list arguments;
  va_start(arguments, flags);
  int mode = va_arg(arguments, int);
  va_end(arguments);
  int descriptor = real(file, flags, mode);
  if (descriptor >= 0 && (flags & O_CREAT)) {
    NAMED(descriptor);
    if (name != NULL) note(OPENED, name, 0, NULL, 0);
  }
  return descriptor;
}

ssize_t pwrite64(int descriptor, const void *data, size_t length, off64_t offset) {
  REAL(pwrite64);
  NAMED(descriptor);
  ssize_t done = real(descriptor, data, length, offset);
  if (name != NULL && done > 0) note(WRITTEN, name, (uint64_t)offset, data, (uint64_t)done);
  return done;
}

/* Used for the acknowledgements alone; the database writes at offsets. */
ssize_t write(int descriptor, const void *data, size_t length) {
  REAL(write);
  NAMED(descriptor);
  ssize_t done = real(descriptor, data, length);
  if (name != NULL && done > 0) note(WRITTEN, name, 0, data, (uint64_t)done);
  return done;
}

int fsync(int descriptor) {
  REAL(fsync);
  NAMED(descriptor);
  int result = real(descriptor);
  if (name != NULL && result == 0) note(name[0] == '\0' ? FOLDER_SYNCED : SYNCED, name, 0, NULL, 0);
  return result;
}

int fdatasync(int descriptor) {
  REAL(fdatasync);
  NAMED(descriptor);
  int result = real(descriptor);
  if (name != NULL && result == 0) note(SYNCED, name, 0, NULL, 0);
  return result;
}

int ftruncate64(int descriptor, off64_t length) {
  REAL(ftruncate64);
  NAMED(descriptor);
  int result = real(descriptor, length);
  if (name != NULL && result == 0) note(CUT, name, (uint64_t)length, NULL, 0);
  return result;
}

int unlink(const char *file) {
  REAL(unlink);
  int result = real(file);
  char path[1024];
  snprintf(path, sizeof path, "%s", file);
  const char *name = within(path);
  if (name != NULL && result == 0) note(REMOVED, name, 0, NULL, 0);
  return result;
}
