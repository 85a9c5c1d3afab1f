import { mkdirSync, realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { SyncError } from '../../contract/index.ts'
import { createFile, isDatabase, toFileError } from './create-file.ts'
import { parseError } from './errors.ts'
import type { Duckdb } from './load-duckdb.ts'

/** The open files of this process. DuckDB lets one process open a file twice, which would damage it. */
const openFiles = new Map<string, DatabaseFile>()

/** A database file, shared by the sessions of this process and closed with the last of them. */
export class DatabaseFile {
  readonly #path: string
  readonly #instance: Promise<DuckDBInstance>
  #sessions = 0
  #last: Promise<unknown> = Promise.resolve()

  private constructor(path: string, instance: Promise<DuckDBInstance>) {
    this.#path = path
    this.#instance = instance
  }

  /** Creates the file and its folder if they do not exist. */
  static async open(duckdb: Duckdb, path: string): Promise<DatabaseFile> {
    const real = resolvePath(path)
    let file = openFiles.get(real)
    if (file === undefined) openFiles.set(real, (file = new DatabaseFile(real, openInstance(duckdb, real))))
    file.#sessions++
    try {
      await file.#instance
    } catch (error) {
      file.#release()
      throw error
    }
    return file
  }

  async connect(): Promise<DuckDBConnection> {
    const connection = await (await this.#instance).connect()
    try {
      await connection.run(SETTINGS)
    } catch (error) {
      // Opening the file again would wait for this connection without end.
      connection.closeSync()
      throw error
    }
    return connection
  }

  /** Transactions of this process follow one another: DuckDB aborts those that write the same rows at once. */
  async runAlone<T>(body: () => Promise<T>): Promise<T> {
    const run = this.#last.then(body, body)
    this.#last = run.catch(() => {})
    return run
  }

  /** The last session writes the log into the file, so that a reader finds everything in one file. */
  async close(): Promise<void> {
    if (this.#release()) (await this.#instance).closeSync()
  }

  #release(): boolean {
    if (--this.#sessions > 0) return false
    openFiles.delete(this.#path)
    return true
  }
}

/**
 * Errors as JSON have a type. The memory is for pages that DuckDB caches; its default is 80 % of that of the machine. No
 * extension is downloaded.
 */
const SETTINGS = `set errors_as_json = true; set memory_limit = '1GB';
  set autoinstall_known_extensions = false; set autoload_known_extensions = false`

/** Opens nothing: closing a file of this process would give up the lock that DuckDB holds on it. */
function resolvePath(path: string): string {
  try {
    mkdirSync(dirname(path), { recursive: true })
    const real = join(realpathSync(dirname(path)), basename(path))
    return realpathSync.native(real)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return join(realpathSync(dirname(path)), basename(path))
    throw toFileError(error, path)
  }
}

async function openInstance(duckdb: Duckdb, path: string): Promise<DuckDBInstance> {
  if (!isDatabase(path)) await createFile(duckdb, path)
  try {
    return await duckdb.DuckDBInstance.fromCache(path)
  } catch (error) {
    const { message } = parseError(error)
    const text = /set lock on file/.test(message)
      ? `Another process has the DuckDB file ${path} open${/ \(PID \d+\)/.exec(message)?.[0] ?? ''}. While one process writes, no other can open it. The destination continues when the file is closed.`
      : `The DuckDB file ${path} cannot be opened: ${message}`
    throw new SyncError('DESTINATION_UNAVAILABLE', text, { cause: error })
  }
}
