import { spawn, type ChildProcess } from 'node:child_process'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildPackage } from '../cli/package.ts'

const MEMBER = fileURLToPath(new URL('fleet-member.mjs', import.meta.url))

export interface MemberOptions {
  readonly store: string
  readonly continuous: number
  readonly manual: number
  readonly pageMs: number
  readonly leaseTtlMs: number
  /** Syncs that are due every half hour. */
  readonly slots?: number
  readonly pollMs?: number
  /** Clock skew. */
  readonly clockAheadMs?: number
}

export interface Line {
  readonly kind: string
  readonly sync: string
  readonly pid: number
  readonly cycle: number
  readonly page: number
}

/** Processes that share a store, and the log of their calls to the source. */
export class Fleet {
  readonly folder = mkdtempSync(join(tmpdir(), 'tidemark-fleet-'))
  readonly log = join(this.folder, 'requests.log')
  readonly #program: string
  readonly #members: ChildProcess[] = []
  #errors = ''

  /** `program` is the file that each process runs. */
  constructor(program = MEMBER) {
    this.#program = program
    writeFileSync(this.log, '')
  }

  async start(count: number, options: MemberOptions | Readonly<Record<string, unknown>>): Promise<void> {
    const dist = join(buildPackage(), 'dist')
    for (let i = 0; i < count; i++) {
      const member = spawn(process.execPath, [this.#program, JSON.stringify({ ...options, dist, log: this.log })], {
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      member.stderr!.on('data', (chunk: Buffer) => (this.#errors += chunk.toString()))
      this.#members.push(member)
    }
    await this.until(
      'all processes are up',
      () => this.lines().filter(({ kind }) => kind === 'up').length === this.#members.length,
    )
  }

  pid(index: number): number {
    return this.#members[index]!.pid!
  }

  /** SIGKILL; resolves with the pid when the process has exited. */
  async kill(index: number): Promise<number> {
    const member = this.#members[index]!
    const gone = new Promise((resolve) => member.once('exit', resolve))
    member.kill('SIGKILL')
    await gone
    appendFileSync(this.log, `killed - ${member.pid}\n`)
    return member.pid!
  }

  /** SIGTERM to all remaining processes; returns their exit codes. */
  async stop(): Promise<Array<number | null>> {
    const left = this.#members.filter((member) => member.exitCode === null && member.signalCode === null)
    return await Promise.all(
      left.map(
        (member) =>
          new Promise<number | null>((resolve) => {
            member.once('exit', resolve)
            member.kill('SIGTERM')
          }),
      ),
    )
  }

  lines(): Line[] {
    return readFileSync(this.log, 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((text) => {
        const [kind = '', ...words] = text.split(' ')
        const [sync, pid] = kind === 'up' || kind === 'stopped' ? ['-', words[0]] : words
        return { kind, sync: sync!, pid: Number(pid), cycle: Number(words[2]), page: Number(words[3]) }
      })
  }

  async until(what: string, condition: () => boolean | Promise<boolean>, limitMs = 40_000): Promise<void> {
    const deadline = performance.now() + limitMs
    while (!(await condition())) {
      if (performance.now() > deadline) throw new Error(`it did not come to this: ${what}.\n${this.#errors}`)
      await new Promise((resolve) => setTimeout(resolve, 25))
    }
  }

  remove(): void {
    for (const member of this.#members) member.kill('SIGKILL')
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** Calls of a sync during a call of another process: there must be none. Calls of a killed process do not count. */
export function overlaps(lines: readonly Line[]): string[] {
  const asking = new Map<string, Line>()
  const found: string[] = []
  for (const line of lines) {
    if (line.kind === 'killed') for (const [sync, { pid }] of asking) if (pid === line.pid) asking.delete(sync)
    if (line.kind === 'answer' && asking.get(line.sync)?.pid === line.pid) asking.delete(line.sync)
    if (line.kind !== 'ask') continue
    const other = asking.get(line.sync)
    if (other !== undefined)
      found.push(
        `${line.sync}: ${line.pid} asked for page ${line.page} while ${other.pid} was reading page ${other.page}`,
      )
    asking.set(line.sync, line)
  }
  return found
}
