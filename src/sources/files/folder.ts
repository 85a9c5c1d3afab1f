/** Where files lie: a folder of this machine, or whatever else can list and read. */
export interface Folder {
  /** As people call it, for messages. */
  readonly name: string
  /** Every file below it, by path; links are not followed. */
  list(signal: AbortSignal): Promise<ListedFile[]>
  /** Null when it is not there any more. */
  open(path: string): Promise<OpenFile | null>
}

export interface ListedFile {
  /** Relative to the folder, with `/` between its parts. */
  readonly path: string
  readonly version: FileVersion
}

/** What cannot stay the same when the content changes. */
export interface FileVersion {
  readonly tag: string
  /** When it was last written, renamed or touched, by the clock of whoever keeps it. */
  readonly changedAtMs: number
}

/** One content, also when another file takes its name meanwhile. */
export interface OpenFile extends AsyncDisposable {
  readonly size: number
  version(): Promise<FileVersion>
  read(start: number, end: number): Promise<Buffer>
}

const CHUNK_BYTES = 256 * 1024

export async function* readChunks(file: OpenFile, from = 0): AsyncGenerator<Buffer> {
  for (let at = from; at < file.size; at += CHUNK_BYTES) yield await file.read(at, Math.min(at + CHUNK_BYTES, file.size))
}
