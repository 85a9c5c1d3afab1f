/** A folder or a bucket. Paths are relative to it, with `/` as separator. Errors are SyncErrors. */
export interface Storage {
  /** For messages and in table metadata: `file:///data/lake`, `s3://bucket/prefix`. */
  readonly uri: string
  /** Checks once that the storage keeps its promises. Called when a session is opened. */
  check(): Promise<void>
  /** Returns null if the file does not exist. */
  read(path: string): Promise<Buffer | null>
  readRange(path: string, start: number, end: number): Promise<Buffer>
  /** Replaces an existing file. The file is durable when this returns. */
  write(path: string, bytes: Uint8Array): Promise<void>
  /** Atomically creates a file with all its bytes; false if it exists. This is the commit of a table. */
  create(path: string, bytes: Uint8Array): Promise<boolean>
  /** Every file below a folder, in any order. */
  list(folder: string): Promise<StoredFile[]>
  /** Files that do not exist are ignored. */
  remove(paths: readonly string[]): Promise<void>
}

export interface StoredFile {
  readonly path: string
  /** The time of the last write, by the clock of the storage. */
  readonly changedAtMs: number
}
