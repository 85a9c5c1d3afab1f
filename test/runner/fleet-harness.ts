import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { openStore } from '../../src/stores/open-store.ts'
import type { SyncSignal, Store } from '../../src/contract/index.ts'
import type { RunnerHarness, StartOptions } from '../../src/testing/runner-cases/harness.ts'

const MEMBER = fileURLToPath(new URL('fleet-harness-member.mjs', import.meta.url))

export interface FleetOptions extends StartOptions {
  /** The file with the outcome of every commit. */
  readonly commits?: string
  /**
   * The process that removes this file suspends itself just before it commits a page, until a file with its pid as
   * suffix exists.
   */
  readonly freezing?: string
  /** For Restate: its ingress, and how long a cycle runs per slice. */
  readonly ingress?: string
  readonly sliceMs?: number
}

/** The commit that a process was about to make when it was suspended. */
export interface FrozenCommit {
  readonly sync: string
  readonly holder: string
  readonly epoch: number
  readonly page: number
}

/** Real processes on one store that run the fixture's worker. */
export class FleetHarness implements RunnerHarness {
  readonly store: Store
  readonly #storeUrl: string
  readonly #stageUrl: string
  readonly members = new Set<ChildProcess>()
  /** A process has suspended itself and waits to be resumed. */
  onFrozen: (member: ChildProcess, commit: FrozenCommit) => void = () => {}
  /** Addresses at which Restate reaches them. */
  readonly urls = new Map<ChildProcess, string>()
  errors = ''

  static async open(storeUrl: string, stageUrl: string): Promise<FleetHarness> {
    return new FleetHarness(await openStore(storeUrl), storeUrl, stageUrl)
  }

  private constructor(store: Store, storeUrl: string, stageUrl: string) {
    this.store = store
    this.#storeUrl = storeUrl
    this.#stageUrl = stageUrl
  }

  async start({ processes, ...options }: FleetOptions): Promise<void> {
    await Promise.all(
      Array.from({ length: processes }, async () => {
        const member = spawn(
          process.execPath,
          [MEMBER, JSON.stringify({ ...options, store: this.#storeUrl, url: this.#stageUrl })],
          { stdio: ['ignore', 'pipe', 'pipe'] },
        )
        this.members.add(member)
        member.once('exit', () => {
          this.members.delete(member)
          this.urls.delete(member)
        })
        member.stderr.on('data', (chunk: Buffer) => (this.errors += chunk.toString()))
        member.stdout.on('data', (chunk: Buffer) => {
          for (const [, commit] of chunk.toString().matchAll(/^frozen (.*)$/gm))
            this.onFrozen(member, JSON.parse(commit!) as FrozenCommit)
          const [, url] = /^up (http.+)$/m.exec(chunk.toString()) ?? []
          if (url !== undefined) this.urls.set(member, url)
        })
        const ended = once(member, 'exit').then(([, signal]: unknown[]) => {
          // Killed by the test before it was ready; every other exit is an error.
          if (signal !== 'SIGKILL') throw new Error(`a process did not start: ${this.errors}`)
        })
        await Promise.race([once(member.stdout, 'data'), ended])
      }),
    )
  }

  trigger(sync: string, tenant = this.store.tenant): Promise<void> {
    return this.#signal(sync, 'trigger', tenant)
  }

  pause(sync: string): Promise<void> {
    return this.#signal(sync, 'pause')
  }

  resume(sync: string): Promise<void> {
    return this.#signal(sync, 'resume')
  }

  async stop(): Promise<void> {
    await Promise.all([...this.members].map((member) => ended(member, 'SIGTERM')))
  }

  async kill(member = [...this.members][0]!): Promise<string> {
    await ended(member, 'SIGKILL')
    return String(member.pid)
  }

  async close(): Promise<void> {
    await Promise.all([...this.members].map((member) => ended(member, 'SIGKILL')))
    await this.store.close()
  }

  #signal(sync: string, kind: SyncSignal['kind'], tenant = this.store.tenant): Promise<void> {
    return this.store.forTenant(tenant).signalSync({ worker: 'stage', sync }, { kind, actor: 'test', at: Date.now() })
  }
}

async function ended(member: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  const gone = once(member, 'exit')
  member.kill(signal)
  await gone
}
