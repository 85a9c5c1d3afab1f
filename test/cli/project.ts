import { spawn, type ChildProcess } from 'node:child_process'
import { copyFileSync, existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { onTestFinished } from 'vitest'
import type { createProgram } from '../../src/cli/program.ts'
import type { reportError } from '../../src/cli/kit/report-error.ts'
import type { OutputStream, Terminal } from '../../src/cli/kit/terminal.ts'
import { buildPackage } from './package.ts'

export interface Answer {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: string
  readonly folder?: string
}

/** The data of the source of fixtures/worker.mjs; written next to it and read for every page. */
export interface SourceFacts {
  readonly people?: readonly {
    readonly id: string
    readonly name: string
    readonly bad?: boolean
    readonly updatedAt?: string
  }[]
  readonly pageSize?: number
  /** How long a page takes. */
  readonly slowMs?: number
  /** From this page of a cycle on, the source fails with the words. */
  readonly failure?: { readonly page: number; readonly message: string }
}

interface Parts {
  readonly createProgram: typeof createProgram
  readonly reportError: typeof reportError
  readonly Terminal: typeof Terminal
}

/** A folder with a worker in it, gone with the test. */
export class Project {
  readonly folder: string
  readonly command: string

  constructor() {
    this.command = join(buildPackage(), 'dist/cli/main.js')
    this.folder = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-project-')))
    onTestFinished(() => rmSync(this.folder, { recursive: true, force: true }))
  }

  /** With the worker of fixtures/, which reads its people from a file. */
  static withWorker(facts: SourceFacts = {}): Project {
    const project = new Project()
    copyFileSync(join(import.meta.dirname, 'fixtures/worker.mjs'), join(project.folder, 'worker.ts'))
    project.source(facts)
    return project
  }

  source(facts: SourceFacts): void {
    this.write('source.json', JSON.stringify({ people: people(5), pageSize: 2, slowMs: 0, failure: null, ...facts }))
  }

  write(file: string, text: string): void {
    writeFileSync(join(this.folder, file), text)
  }

  has(file: string): boolean {
    return existsSync(join(this.folder, file))
  }

  run(...given: readonly (string | RunOptions)[]): Promise<Answer> {
    return this.start(...given).ended
  }

  /**
   * The built command in this process: it answers the same, and a hundred processes take a minute. For what is not about the
   * process itself, nor about a worker file that was changed since it was loaded.
   */
  async ask(...given: readonly (string | Pick<RunOptions, 'env'>)[]): Promise<Answer> {
    const args = given.filter((argument) => typeof argument === 'string')
    const { env = {} } = given.find((argument) => typeof argument === 'object') ?? {}
    const { createProgram, reportError, Terminal } = await this.#load()
    const said = { stdout: '', stderr: '' }
    const streamOf = (name: keyof typeof said): OutputStream => ({
      on: () => {},
      write: (text, done) => {
        said[name] += text
        done?.()
      },
    })
    const { PATH = '', HOME = '' } = process.env
    const environment = { PATH, HOME, TZ: 'UTC', ...env }
    const terminal = new Terminal({
      stdout: streamOf('stdout'),
      stderr: streamOf('stderr'),
      environment,
      json: args.includes('--json'),
    })
    const cli = {
      terminal,
      stdout: new PassThrough(),
      targetFlags: [],
      environment,
      folder: this.folder,
      listenForStop: () => new AbortController().signal,
    }
    let code = 0
    const program = await createProgram(cli, (given) => (code = given), args[0])
    try {
      await program.parseAsync(['node', 'tidemark', ...args])
    } catch (error) {
      const verb = program.commands.find((command) => command.name() === args[0])
      code = reportError(cli, error, verb === undefined ? 'tidemark --help' : `tidemark ${verb.name()} --help`)
    }
    return { code, ...said }
  }

  async #load(): Promise<Parts> {
    const parts = await Promise.all(
      ['program.js', 'kit/report-error.js', 'kit/terminal.js'].map(
        (file) => import(join(this.command, '..', file)) as Promise<object>,
      ),
    )
    return Object.assign({}, ...parts) as Parts
  }

  /** The document a command answers with. */
  async json(...args: readonly string[]): Promise<Record<string, any>> {
    const { stdout, stderr } = await this.ask(...args, '--json')
    const lines = stdout.trim().split('\n')
    try {
      return JSON.parse(lines.at(-1)!) as Record<string, unknown>
    } catch {
      throw new Error(`not a document: ${stdout}${stderr}`)
    }
  }

  start(...given: readonly (string | RunOptions)[]): Running {
    return new Running(
      this,
      given.filter((argument) => typeof argument === 'string'),
      given.find((argument) => typeof argument === 'object') ?? {},
    )
  }
}

export class Running {
  readonly process: ChildProcess
  readonly ended: Promise<Answer>
  stdout = ''
  stderr = ''
  readonly #waiting = new Set<() => void>()

  constructor(
    project: Project,
    args: readonly string[],
    { env = {}, stdin = '', folder = project.folder }: RunOptions,
  ) {
    const { PATH = '', HOME = '', NODE_OPTIONS = '' } = process.env
    this.process = spawn(process.execPath, [project.command, ...args], {
      cwd: folder,
      env: { PATH, HOME, TZ: 'UTC', NODE_OPTIONS, ...env },
      stdio: 'pipe',
    })
    this.process.stdin!.on('error', () => {})
    this.process.stdin!.end(stdin)
    this.process.stdout!.setEncoding('utf8').on('data', (text: string) => this.#hear(() => (this.stdout += text)))
    this.process.stderr!.setEncoding('utf8').on('data', (text: string) => this.#hear(() => (this.stderr += text)))
    this.ended = new Promise((resolve, reject) => {
      this.process.once('error', reject)
      this.process.once('close', (code) =>
        this.#hear(() => resolve({ code, stdout: this.stdout, stderr: this.stderr })),
      )
    })
    onTestFinished(() => void this.process.kill('SIGKILL'))
  }

  /** Waits for words on either stream. */
  async says(words: string | RegExp): Promise<void> {
    const heard = (): boolean =>
      typeof words === 'string' ? (this.stdout + this.stderr).includes(words) : words.test(this.stdout + this.stderr)
    while (!heard()) {
      if (this.process.exitCode !== null || this.process.signalCode !== null)
        throw new Error(`it ended without saying ${words}:\n${this.stdout}${this.stderr}`)
      await new Promise<void>((resolve) => this.#waiting.add(resolve))
    }
  }

  #hear(note: () => void): void {
    note()
    for (const wake of this.#waiting) wake()
    this.#waiting.clear()
  }
}

export function people(count: number): { id: string; name: string }[] {
  return Array.from({ length: count }, (_, number) => ({
    id: `p${String(number + 1).padStart(4, '0')}`,
    name: `Person ${number + 1}`,
  }))
}
