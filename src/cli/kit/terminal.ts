import { createColors } from 'picocolors'
import type { Environment } from '../../config/settings.ts'
import { toJson } from './json-document.ts'
import { truncateToWidth, visibleWidth } from './table.ts'

/** The part of a stream that a terminal uses. */
export interface OutputStream {
  write(text: string, done?: () => void): unknown
  on(event: 'error', listener: (error: NodeJS.ErrnoException) => void): unknown
  readonly isTTY?: boolean
  readonly columns?: number
  readonly rows?: number
  /** The current size; `columns` and `rows` are updated only when the event loop runs. */
  getWindowSize?(): [columns: number, rows: number]
}

export interface TerminalOptions {
  readonly stdout: OutputStream
  readonly stderr: OutputStream
  readonly environment: Environment
  readonly json: boolean
  /** Prints no remarks. */
  readonly quiet?: boolean
}

/** Writes results to standard output, and remarks to standard error unless `--json` or `--quiet` is given. */
export class Terminal {
  readonly json: boolean
  readonly colors: ReturnType<typeof createColors>
  readonly #stdout: OutputStream
  readonly #stderr: OutputStream
  readonly #isQuiet: boolean
  readonly #closing = new AbortController()
  /** Lines that are redrawn in place; other output goes above them. */
  #drawnLines: string[] = []
  #isFullScreen = false

  constructor(options: TerminalOptions) {
    this.#stdout = options.stdout
    this.#stderr = options.stderr
    this.json = options.json
    this.#isQuiet = options.quiet === true
    this.colors = createColors(!options.json && wantsColors(options))
    // EPIPE: the reader, such as `head`, has closed the pipe, so further output is dropped.
    for (const stream of [options.stdout, options.stderr]) {
      stream.on('error', (error) => {
        if (error.code !== 'EPIPE') throw error
        this.#closing.abort()
      })
    }
  }

  /** Whether lines can be redrawn. */
  get isInteractive(): boolean {
    return this.#stdout.isTTY === true && !this.json
  }

  get columns(): number {
    return this.#stdout.getWindowSize?.()[0] ?? this.#stdout.columns ?? 120
  }

  get rows(): number {
    return this.#stdout.getWindowSize?.()[1] ?? this.#stdout.rows ?? 24
  }

  /** Aborted when the reader of standard output has closed the pipe. */
  get closed(): AbortSignal {
    return this.#closing.signal
  }

  print(...lines: readonly string[]): void {
    if (!this.closed.aborted) this.#writeAbove(() => this.#stdout.write(lines.map((line) => `${line}\n`).join('')))
  }

  remark(...lines: readonly string[]): void {
    if (!this.json && !this.#isQuiet) this.log(lines.map((line) => `${line}\n`).join(''))
  }

  printDocument(document: object): void {
    this.print(toJson(document))
  }

  /** Writes log lines, which include their newline. */
  log(text: string): void {
    this.#writeAbove(() => this.#stderr.write(text))
  }

  /** Replaces the drawn lines. Truncates to the screen, because lines outside it could not be redrawn. */
  draw(lines: readonly string[]): void {
    const rowsMax = Math.max(1, this.rows - 1)
    const fitting =
      lines.length <= rowsMax
        ? lines
        : [...lines.slice(0, rowsMax - 1), this.colors.dim(`… and ${lines.length - rowsMax + 1} more`)]
    const drawn = fitting.map((line) => truncateToWidth(line, this.columns - 1))
    this.#stdout.write(this.#erase() + drawn.map((line) => `\u001b[2K${line}\n`).join(''))
    this.#drawnLines = drawn
  }

  /**
   * Switches to the alternate screen. On resize some terminals wrap lines and others cut them, so the number of rows
   * above the cursor is unknown; the alternate screen does not need it.
   */
  enterFullScreen(): void {
    if (!this.isInteractive) return
    this.#isFullScreen = true
    this.#stdout.write('\u001b[?1049h')
  }

  /** Leaves the alternate screen and prints the drawn lines. */
  leaveFullScreen(): void {
    const drawn = this.#drawnLines
    this.#drawnLines = []
    if (!this.#isFullScreen) return
    this.#isFullScreen = false
    this.#stdout.write('\u001b[?1049l')
    this.print(...drawn)
  }

  /** Resolves when all output has been flushed. */
  async drain(): Promise<void> {
    await Promise.all(
      [this.#stdout, this.#stderr].map(
        (stream) =>
          new Promise<void>((resolve) => {
            if (this.closed.aborted) resolve()
            else stream.write('', () => resolve())
          }),
      ),
    )
  }

  #writeAbove(write: () => void): void {
    const live = this.#drawnLines
    if (live.length > 0) this.#stdout.write(this.#erase())
    this.#drawnLines = []
    write()
    if (live.length > 0) this.draw(live)
  }

  /** Accounts for drawn lines that wrap because the screen has become narrower. */
  #erase(): string {
    if (this.#isFullScreen) return '\u001b[H\u001b[0J'
    const rows = this.#drawnLines.reduce(
      (sum, line) => sum + Math.max(1, Math.ceil(visibleWidth(line) / this.columns)),
      0,
    )
    return rows === 0 ? '' : `\u001b[${rows}F\u001b[0J`
  }
}

function wantsColors({ stdout, environment }: TerminalOptions): boolean {
  if (environment['NO_COLOR']) return false
  const forced = environment['FORCE_COLOR']
  if (forced !== undefined && forced !== '') return forced !== '0'
  return stdout.isTTY === true && environment['TERM'] !== 'dumb'
}
