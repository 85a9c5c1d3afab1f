import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { openStore } from '../../src/stores/open-store.ts'
import type { SyncSignal, Store } from '../../src/contract/index.ts'
import type { RunnerHarness, StartOptions } from '../../src/testing/runner-cases/harness.ts'

const MEMBER = fileURLToPath(new URL('fleet-harness-member.mjs', import.meta.url))

export interface FleetOptions extends StartOptions {
  /** Where every commit's outcome is written down. */
  readonly commits?: string
  /** Whoever takes this file away freezes itself just before it lands a page, until there is one with its pid at the end. */
  readonly freezing?: string
  /** Of Restate, where that is what runs them, and how long a cycle runs at a time. */
  readonly ingress?: string
  readonly sliceMs?: number
}

/** What a process was about to do when it froze. */
export interface FrozenCommit {
  readonly sync: string
  readonly holder: string
  readonly epoch: number
  readonly page: number
}

/** Real processes on one store, that run the stage's worker. */
export class FleetHarness implements RunnerHarness {
  readonly store: Store
  readonly #storeUrl: string
  readonly #stageUrl: string
  readonly members = new Set<ChildProcess>()
  /** One has frozen itself, and waits to be thawed. */
  onFrozen: (member: ChildProcess, commit: FrozenCommit) => void = () => {}
  /** Where Restate reaches them. */
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
    await Promise.all(Array.from({ length: processes }, async () => {
      const member = spawn(process.execPath, [MEMBER, JSON.stringify({ ...options, store: this.#storeUrl, url: this.#stageUrl })], { stdio: ['ignore', 'pipe', 'pipe'] })
      this.members.add(member)
      member.once('exit', () => {
        this.members.delete(member)
        this.urls.delete(member)
      })
      member.stderr.on('data', (chunk: Buffer) => (this.errors += chunk.toString()))
      member.stdout.on('data', (chunk: Buffer) => {
        for (const [, commit] of chunk.toString().matchAll(/^frozen (.*)$/gm)) this.onFrozen(member, JSON.parse(commit!) as FrozenCommit)
        const [, url] = /^up (http.+)$/m.exec(chunk.toString()) ?? []
        if (url !== undefined) this.urls.set(member, url)
      })
      const ended = once(member, 'exit').then(([, signal]: unknown[]) => {
        // Killed by us before it was up; otherwise something is wrong with it.
        if (signal !== 'SIGKILL') throw new Error(`a process did not start: ${this.errors}`)
      })
      await Promise.race([once(member.stdout, 'data'), ended])
    }))
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
