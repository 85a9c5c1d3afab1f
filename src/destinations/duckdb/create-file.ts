import { randomBytes } from 'node:crypto'
import { closeSync, linkSync, openSync, readSync, rmSync } from 'node:fs'
import { SyncError, type ErrorCode } from '../../contract/index.ts'
import { toDestinationError } from './errors.ts'
import type { Duckdb } from './load-duckdb.ts'

/**
 * True for a file with the header of a DuckDB database, false if there is no file. Anything else is refused before DuckDB
 * sees it: it opens files of other formats with extensions.
 */
export function isDatabase(path: string): boolean {
  const header = Buffer.alloc(MAGIC_AT + MAGIC.length)
  try {
    const descriptor = openSync(path, 'r+')
    try {
      readSync(descriptor, header, 0, header.length, 0)
    } finally {
      closeSync(descriptor)
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw toFileError(error, path)
  }
  if (header.toString('latin1', MAGIC_AT) === MAGIC) return true
  throw new SyncError('DESTINATION_FOREIGN', `${path} is not a DuckDB database. The file was not changed.`)
}

const MAGIC = 'DUCK'
const MAGIC_AT = 8

/** A process that is killed meanwhile leaves no file that DuckDB cannot open: it is created beside, then linked. */
export async function createFile(duckdb: Duckdb, path: string): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString('hex')}.new`
  try {
    const instance = await duckdb.DuckDBInstance.create(draft)
    instance.closeSync()
    linkSync(draft, path)
  } catch (error) {
    // Another process created it.
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return
    throw toFileError(error, path)
  } finally {
    rmSync(draft, { force: true })
  }
}

const FILE_ERROR_CODES: Record<string, ErrorCode> = {
  EACCES: 'DESTINATION_REFUSED',
  EPERM: 'DESTINATION_REFUSED',
  EROFS: 'DESTINATION_REFUSED',
  EISDIR: 'DESTINATION_FOREIGN',
  ENOTDIR: 'DESTINATION_FOREIGN',
  EEXIST: 'DESTINATION_FOREIGN', // a folder of the path is a file
  ENOSPC: 'DESTINATION_FULL',
  EDQUOT: 'DESTINATION_FULL',
}

export function toFileError(error: unknown, path: string): SyncError {
  const { code = '', message } = error as NodeJS.ErrnoException
  const known = FILE_ERROR_CODES[code]
  if (known === undefined) return toDestinationError(error, `The DuckDB file ${path}`)
  return new SyncError(known, `The DuckDB file ${path} cannot be opened: ${message}`, { cause: error })
}
