import { createColors } from 'picocolors'
import type { Environment } from '../../config/settings.ts'
import { toJson } from './json-document.ts'
import { truncateToWidth, visibleWidth } from './table.ts'

/** What a terminal needs of a stream. */
export interface OutputStream {
  write(text: string, done?: () => void): unknown
  on(event: 'error', listener: (error: NodeJS.ErrnoException) => void): unknown
  readonly isTTY?: boolean
  readonly columns?: number
  readonly rows?: number
  /** As it is now; the other two are told only when the event loop gets to it. */
  getWindowSize?(): [columns: number, rows: number]
}

export interface TerminalOptions {
  readonly stdout: OutputStream
  readonly stderr: OutputStream
  readonly environment: Environment
  readonly json: boolean
}

/** Where the answer goes (standard output) and where the remarks go (standard error, and nowhere with `--json`). */
export class Terminal {
  readonly json: boolean
  readonly colors: ReturnType<typeof createColors>
  readonly #stdout: OutputStream
  readonly #stderr: OutputStream
  readonly #closing = new AbortController()
  /** Lines that are redrawn in place; whatever else is written goes above them. */
  #drawnLines: string[] = []
  #isFullScreen = false

  constructor(options: TerminalOptions) {
    this.#stdout = options.stdout
    this.#stderr = options.stderr
    this.json = options.json
    this.colors = createColors(!options.json && wantsColors(options))
    // Whoever read the answer has gone, as `head` does: there is nobody left to tell.
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

  /** Aborted when nobody reads standard output any more. */
  get closed(): AbortSignal {
    return this.#closing.signal
  }

  print(...lines: readonly string[]): void {
    if (!this.closed.aborted) this.#writeAbove(() => this.#stdout.write(lines.map((line) => `${line}\n`).join('')))
  }

  remark(...lines: readonly string[]): void {
    if (!this.json) this.log(lines.map((line) => `${line}\n`).join(''))
  }

  printDocument(document: object): void {
    this.print(toJson(document))
  }

  /** Lines of the log, which bring their newline. */
  log(text: string): void {
    this.#writeAbove(() => this.#stderr.write(text))
  }

  /** In place of what was drawn before; no more and no wider than the screen, which could not be redrawn otherwise. */
  draw(lines: readonly string[]): void {
    const most = Math.max(1, this.rows - 1)
    const fitting = lines.length <= most ? lines : [...lines.slice(0, most - 1), this.colors.dim(`… and ${lines.length - most + 1} more`)]
    const drawn = fitting.map((line) => truncateToWidth(line, this.columns - 1))
    this.#stdout.write(this.#erase() + drawn.map((line) => `\u001b[2K${line}\n`).join(''))
    this.#drawnLines = drawn
  }

  /**
   * From now on what is drawn has the whole screen, and what was on it comes back at the end. Some terminals fold their lines
   * when they are made narrower and others cut them: how many rows lie above the cursor is then anybody's guess, and a screen
   * of one's own needs no guess.
   */
  enterFullScreen(): void {
    if (!this.isInteractive) return
    this.#isFullScreen = true
    this.#stdout.write('\u001b[?1049h')
  }

  /** Leaves the drawn lines where they are. */
  leaveFullScreen(): void {
    const drawn = this.#drawnLines
    this.#drawnLines = []
    if (!this.#isFullScreen) return
    this.#isFullScreen = false
    this.#stdout.write('\u001b[?1049l')
    this.print(...drawn)
  }

  /** Everything written has left the process. */
  async drain(): Promise<void> {
    await Promise.all([this.#stdout, this.#stderr].map((stream) => new Promise<void>((resolve) => {
      if (this.closed.aborted) resolve()
      else stream.write('', () => resolve())
    })))
  }

  #writeAbove(write: () => void): void {
    const live = this.#drawnLines
    if (live.length > 0) this.#stdout.write(this.#erase())
    this.#drawnLines = []
    write()
    if (live.length > 0) this.draw(live)
  }

  /** A line that was drawn wider than the screen is now takes more of its rows. */
  #erase(): string {
    if (this.#isFullScreen) return '\u001b[H\u001b[0J'
    const rows = this.#drawnLines.reduce((sum, line) => sum + Math.max(1, Math.ceil(visibleWidth(line) / this.columns)), 0)
    return rows === 0 ? '' : `\u001b[${rows}F\u001b[0J`
  }
}

function wantsColors({ stdout, environment }: TerminalOptions): boolean {
  if (environment['NO_COLOR']) return false
  const forced = environment['FORCE_COLOR']
  if (forced !== undefined && forced !== '') return forced !== '0'
  return stdout.isTTY === true && environment['TERM'] !== 'dumb'
}
