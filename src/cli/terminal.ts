import { createColors } from 'picocolors'
import type { Environment } from '../config/settings.ts'
import { toJson } from './json-document.ts'

/** What a terminal needs of a stream. */
export interface Stream {
  write(text: string, done?: () => void): unknown
  on(event: 'error', listener: (error: NodeJS.ErrnoException) => void): unknown
  readonly isTTY?: boolean
  readonly columns?: number
}

export interface TerminalOptions {
  readonly stdout: Stream
  readonly stderr: Stream
  readonly environment: Environment
  readonly json: boolean
}

/** Where the answer goes (standard output) and where the remarks go (standard error, and nowhere with `--json`). */
export class Terminal {
  readonly json: boolean
  readonly colors: ReturnType<typeof createColors>
  readonly #stdout: Stream
  readonly #stderr: Stream
  readonly #closing = new AbortController()
  /** Lines that are redrawn in place; whatever else is written goes above them. */
  #live: string[] = []

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
  get isLive(): boolean {
    return this.#stdout.isTTY === true && !this.json
  }

  get columns(): number {
    return this.#stdout.columns ?? 120
  }

  /** Aborted when nobody reads standard output any more. */
  get closed(): AbortSignal {
    return this.#closing.signal
  }

  print(...lines: readonly string[]): void {
    if (!this.closed.aborted) this.#above(() => this.#stdout.write(lines.map((line) => `${line}\n`).join('')))
  }

  remark(...lines: readonly string[]): void {
    if (!this.json) this.log(lines.map((line) => `${line}\n`).join(''))
  }

  document(document: object): void {
    this.print(toJson(document))
  }

  /** Lines of the log, which bring their newline. */
  log(text: string): void {
    this.#above(() => this.#stderr.write(text))
  }

  draw(lines: readonly string[]): void {
    const text = lines.map((line) => `\u001b[2K${line}\n`).join('')
    this.#stdout.write(this.#erase() + text)
    this.#live = [...lines]
  }

  /** Leaves the drawn lines where they are. */
  settle(): void {
    this.#live = []
  }

  clear(): void {
    this.#stdout.write('\u001b[2J\u001b[H')
  }

  /** Everything written has left the process. */
  async drain(): Promise<void> {
    await Promise.all([this.#stdout, this.#stderr].map((stream) => new Promise<void>((resolve) => {
      if (this.closed.aborted) resolve()
      else stream.write('', () => resolve())
    })))
  }

  #above(write: () => void): void {
    const live = this.#live
    if (live.length > 0) this.#stdout.write(this.#erase())
    this.#live = []
    write()
    if (live.length > 0) this.draw(live)
  }

  #erase(): string {
    return this.#live.length === 0 ? '' : `\u001b[${this.#live.length}F\u001b[0J`
  }
}

function wantsColors({ stdout, environment }: TerminalOptions): boolean {
  if (environment['NO_COLOR']) return false
  const forced = environment['FORCE_COLOR']
  if (forced !== undefined && forced !== '') return forced !== '0'
  return stdout.isTTY === true && environment['TERM'] !== 'dumb'
}
