import { randomUUID } from 'node:crypto'
import { link, mkdir, open, readdir, readFile, rename, rm, stat, unlink } from 'node:fs/promises'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { SyncError, type ErrorCode } from '../../../contract/index.ts'
import type { Storage, StoredFile } from './storage.ts'

/** A folder. A file is created with a hard link, which fails if the name exists: two processes never both succeed. */
export class LocalStorage implements Storage {
  readonly uri: string
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = resolve(folder)
    this.uri = `file://${this.#folder}`
  }

  async check(): Promise<void> {
    await this.#guard('the folder', () => makeFolder(this.#folder))
  }

  read(path: string): Promise<Buffer | null> {
    return this.#guard(path, async () => {
      try {
        return await readFile(this.#resolve(path))
      } catch (error) {
        if (isMissing(error)) return null
        throw error
      }
    })
  }

  readRange(path: string, start: number, end: number): Promise<Buffer> {
    return this.#guard(path, async () => {
      const handle = await open(this.#resolve(path), 'r')
      try {
        // A buffer of its own, because the Parquet reader takes the whole ArrayBuffer.
        const bytes = Buffer.from(new ArrayBuffer(end - start))
        for (let filled = 0; filled < bytes.length;) {
          const { bytesRead } = await handle.read(bytes, filled, bytes.length - filled, start + filled)
          if (bytesRead === 0) throw new Error(`${path} is shorter than expected`)
          filled += bytesRead
        }
        return bytes
      } finally {
        await handle.close()
      }
    })
  }

  write(path: string, bytes: Uint8Array): Promise<void> {
    return this.#guard(path, async () => {
      const part = await this.#writePart(path, bytes)
      await rename(part, this.#resolve(path))
      await syncFolder(dirname(part))
    })
  }

  create(path: string, bytes: Uint8Array): Promise<boolean> {
    return this.#guard(path, async () => {
      const part = await this.#writePart(path, bytes)
      try {
        await link(part, this.#resolve(path))
      } catch (error) {
        if (codeOf(error) === 'EEXIST') return false
        throw error
      } finally {
        await unlink(part)
      }
      await syncFolder(dirname(part))
      return true
    })
  }

  list(folder: string): Promise<StoredFile[]> {
    return this.#guard(folder, async () => {
      const root = this.#resolve(folder)
      const entries = await readdir(root, { recursive: true, withFileTypes: true }).catch((error: unknown) => {
        if (isMissing(error)) return []
        throw error
      })
      const files: StoredFile[] = []
      for (const entry of entries) {
        if (!entry.isFile()) continue
        const file = join(entry.parentPath, entry.name)
        const found = await stat(file).catch((error: unknown) => {
          if (isMissing(error)) return null
          throw error
        })
        const path = relative(this.#folder, file).replaceAll(sep, '/')
        if (found !== null) files.push({ path, changedAtMs: found.mtimeMs })
      }
      return files
    })
  }

  remove(paths: readonly string[]): Promise<void> {
    return this.#guard(paths[0] ?? '', async () => {
      for (const path of paths) await rm(this.#resolve(path), { force: true })
    })
  }

  /** Synced before it gets its name, so that a named file is always complete. */
  async #writePart(path: string, bytes: Uint8Array): Promise<string> {
    const folder = dirname(this.#resolve(path))
    await makeFolder(folder)
    const part = join(folder, `.${randomUUID()}.part`)
    const handle = await open(part, 'wx')
    try {
      await handle.writeFile(bytes)
      await handle.sync()
    } catch (error) {
      await rm(part, { force: true }).catch(() => {})
      throw error
    } finally {
      await handle.close()
    }
    return part
  }

  #resolve(path: string): string {
    return join(this.#folder, path)
  }

  async #guard<T>(path: string, body: () => Promise<T>): Promise<T> {
    try {
      return await body()
    } catch (error) {
      if (error instanceof SyncError) throw error
      const code = codeOf(error)
      const remedy = REMEDIES[code] ?? ''
      throw new SyncError(
        ERROR_CODES[code] ?? 'DESTINATION_UNAVAILABLE',
        `${this.#folder}: ${path} could not be read or written (${code}).${remedy}`,
        { cause: error },
      )
    }
  }
}

const ERROR_CODES: Record<string, ErrorCode> = {
  EACCES: 'DESTINATION_REFUSED',
  EPERM: 'DESTINATION_REFUSED',
  EROFS: 'DESTINATION_REFUSED',
  ENOTDIR: 'DESTINATION_REFUSED',
  EEXIST: 'DESTINATION_REFUSED',
  EOPNOTSUPP: 'DESTINATION_REFUSED',
  ENOTSUP: 'DESTINATION_REFUSED',
  ENOSYS: 'DESTINATION_REFUSED',
  ENOSPC: 'DESTINATION_FULL',
  EDQUOT: 'DESTINATION_FULL',
  EFBIG: 'DESTINATION_FULL',
}

const NO_LINKS = ' The file system must support hard links, which make a commit atomic.'
const NO_FOLDER = ' A part of the path is a file, and not a folder.'
const REMEDIES: Record<string, string> = {
  EPERM: NO_LINKS,
  EOPNOTSUPP: NO_LINKS,
  ENOTSUP: NO_LINKS,
  ENOSYS: NO_LINKS,
  ENOTDIR: NO_FOLDER,
  EEXIST: NO_FOLDER,
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? 'unknown error'
}

function isMissing(error: unknown): boolean {
  return codeOf(error) === 'ENOENT'
}

async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true })
  } catch (error) {
    // On a read-only file system, Node reports a missing file. Without `recursive` it reports the reason.
    if (isMissing(error)) await mkdir(folder)
    throw error
  }
}

/** Makes the names in the folder durable. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
