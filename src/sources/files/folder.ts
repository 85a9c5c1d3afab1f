/** A location that can list and read files: a local folder, or another storage. */
export interface Folder {
  /** Name for messages. */
  readonly name: string
  /** Lists every file below it by path; links are not followed. */
  list(signal: AbortSignal): Promise<ListedFile[]>
  /** Returns null if the file no longer exists. */
  open(path: string): Promise<OpenFile | null>
}

/** A file in a listing of a folder. */
export interface ListedFile {
  /** Relative to the folder, with `/` as separator. */
  readonly path: string
  readonly version: FileVersion
}

/** Changes whenever the content changes. */
export interface FileVersion {
  readonly tag: string
  /** Time of the last write, rename or touch, by the clock of the storage. */
  readonly changedAtMs: number
}

/** One version of a file's content, even if another file takes its name meanwhile. */
export interface OpenFile extends AsyncDisposable {
  readonly size: number
  version(): Promise<FileVersion>
  read(start: number, end: number): Promise<Buffer>
}

const CHUNK_BYTES = 256 * 1024

export async function* readChunks(file: OpenFile, from = 0): AsyncGenerator<Buffer> {
  for (let at = from; at < file.size; at += CHUNK_BYTES)
    yield await file.read(at, Math.min(at + CHUNK_BYTES, file.size))
}
