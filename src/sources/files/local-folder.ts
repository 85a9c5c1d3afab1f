import { hash } from 'node:crypto'
import type { BigIntStats } from 'node:fs'
import { lstat, open, readdir, type FileHandle } from 'node:fs/promises'
import { join, relative, resolve, sep } from 'node:path'
import { SyncError } from '../../contract/index.ts'
import type { FileVersion, Folder, ListedFile, OpenFile } from './folder.ts'

const STAT_CONCURRENCY = 64

export class LocalFolder implements Folder {
  readonly name: string

  constructor(path: string) {
    this.name = resolve(path)
  }

  async list(signal: AbortSignal): Promise<ListedFile[]> {
    const entries = await readdir(this.name, { recursive: true, withFileTypes: true }).catch((error: unknown) => {
      throw toSyncError(error, this.name)
    })
    const paths = entries.map((entry) => relative(this.name, join(entry.parentPath, entry.name)).replaceAll(sep, '/'))
    const files: ListedFile[] = []
    for (let at = 0; at < paths.length; at += STAT_CONCURRENCY) {
      signal.throwIfAborted()
      const found = await Promise.all(paths.slice(at, at + STAT_CONCURRENCY).map((path) => this.#stat(path)))
      files.push(...found.filter((file) => file !== null))
    }
    return files
  }

  async open(path: string): Promise<OpenFile | null> {
    let handle: FileHandle | undefined
    try {
      handle = await open(join(this.name, path), 'r')
      return new LocalFile(handle, path, await handle.stat({ bigint: true }))
    } catch (error) {
      await handle?.close()
      if (isNotFound(error)) return null
      throw toSyncError(error, path)
    }
  }

  async #stat(path: string): Promise<ListedFile | null> {
    try {
      const stats = await lstat(join(this.name, path), { bigint: true })
      return stats.isFile() ? { path, version: toFileVersion(stats) } : null
    } catch (error) {
      if (isNotFound(error)) return null
      throw toSyncError(error, path)
    }
  }
}

class LocalFile implements OpenFile {
  readonly size: number
  readonly #handle: FileHandle
  readonly #path: string

  constructor(handle: FileHandle, path: string, stats: BigIntStats) {
    this.#handle = handle
    this.#path = path
    this.size = Number(stats.size)
  }

  async version(): Promise<FileVersion> {
    return toFileVersion(await this.#handle.stat({ bigint: true }))
  }

  async read(start: number, end: number): Promise<Buffer> {
    const buffer = Buffer.allocUnsafe(end - start)
    let filled = 0
    while (filled < buffer.length) {
      const { bytesRead } = await this.#handle
        .read(buffer, filled, buffer.length - filled, start + filled)
        .catch((error: unknown) => {
          throw toSyncError(error, this.#path)
        })
      // The file was truncated meanwhile; the version check after the page detects it.
      if (bytesRead === 0) break
      filled += bytesRead
    }
    return buffer.subarray(0, filled)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close()
  }
}

/** Programs can set the modification time, but only the system clock sets the change time of the entry. */
function toFileVersion({ size, mtimeNs, ctimeNs, ino }: BigIntStats): FileVersion {
  return {
    tag: hash('sha256', `${size} ${mtimeNs} ${ctimeNs} ${ino}`, 'base64').slice(0, 8),
    changedAtMs: Number(ctimeNs / 1_000_000n),
  }
}

function isNotFound(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR', 'EISDIR'].includes((error as NodeJS.ErrnoException).code ?? '')
}

function toSyncError(error: unknown, what: string): SyncError {
  const { code } = error as NodeJS.ErrnoException
  if (isNotFound(error))
    return new SyncError('SOURCE_NOT_FOUND', `The folder ${what} does not exist. Check \`folder\`.`, { cause: error })
  if (code === 'EACCES' || code === 'EPERM')
    return new SyncError('SOURCE_FORBIDDEN', `${what} is not readable by this account (${code}). Grant read access.`, {
      cause: error,
    })
  return new SyncError('SOURCE_UNAVAILABLE', `${what} could not be read (${code ?? 'unknown error'}).`, {
    cause: error,
  })
}
