import { spawn, type ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Build } from './build.ts'

export interface ChildOptions {
  /** Passed to the script as JSON. */
  readonly input?: Readonly<Record<string, unknown>>
  readonly nodeFlags?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

/** The output of a script: one JSON object per line. */
export interface ChildMessage {
  readonly event: string
  readonly [field: string]: unknown
}

export interface ChildExit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly said: readonly ChildMessage[]
  readonly stderr: string
}

const running = new Set<ChildProcess>()

/** A script of children/ in a separate process. It ends with this process at the latest. */
export class Child {
  readonly #process: ChildProcess
  readonly #said: ChildMessage[] = []
  readonly #waiting = new Set<() => void>()
  readonly ended: Promise<ChildExit>
  #isOver = false

  constructor(build: Build, script: string, { input = {}, nodeFlags = [], env = {} }: ChildOptions = {}) {
    const file = join(import.meta.dirname, 'children', script)
    this.#process = spawn(process.execPath, [...nodeFlags, file, JSON.stringify({ dist: build.dist, ...input })], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, TIDEMARK_LOG: 'silent', ...env },
    })
    running.add(this.#process)
    this.#process.stdin!.on('error', () => {})
    let stderr = ''
    this.#process.stderr!.on('data', (chunk: Buffer) => (stderr = (stderr + chunk.toString()).slice(-10_000)))
    const lines = createInterface({ input: this.#process.stdout! })
    lines.on('line', (line) => {
      // A process killed while it writes leaves half a line.
      if (line.endsWith('}')) this.#said.push(JSON.parse(line) as ChildMessage)
      this.#wake()
    })
    const read = new Promise<void>((resolve) => lines.once('close', resolve))
    this.ended = new Promise((resolve, reject) => {
      this.#process.once('error', reject)
      this.#process.once('close', (code, signal) => {
        running.delete(this.#process)
        this.#isOver = true
        void read.then(() => {
          this.#wake()
          resolve({ code, signal, said: this.#said, stderr })
        })
      })
    })
  }

  get pid(): number {
    return this.#process.pid!
  }

  get said(): readonly ChildMessage[] {
    return this.#said
  }

  /** Waits for the first matching line; fails when the process ends without printing it. */
  async until(event: string, fits: (said: ChildMessage) => boolean = () => true): Promise<ChildMessage> {
    for (;;) {
      const found = this.#said.find((said) => said.event === event && fits(said))
      if (found !== undefined) return found
      if (this.#isOver) {
        const { code, signal, stderr } = await this.ended
        throw new Error(`the process ended (${code ?? signal}) before it reported ${event}: ${stderr}`)
      }
      await new Promise<void>((resolve) => this.#waiting.add(resolve))
    }
  }

  /** Lets a script continue that waits for input. */
  tell(word: string): void {
    this.#process.stdin!.write(`${word}\n`)
  }

  signal(name: NodeJS.Signals): void {
    this.#process.kill(name)
  }

  async kill(): Promise<ChildExit> {
    this.#process.kill('SIGKILL')
    return await this.ended
  }

  #wake(): void {
    for (const wake of this.#waiting) wake()
    this.#waiting.clear()
  }
}

/** Ends all processes that a failed test left behind. */
export function killChildren(): void {
  for (const child of running) child.kill('SIGKILL')
}

process.once('exit', killChildren)
