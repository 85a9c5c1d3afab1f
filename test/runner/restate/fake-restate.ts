import { Job } from '../../../src/runner/job.ts'
import type { DeclaredSync } from '../../../src/runner/declared-sync.ts'
import type { Sdk } from '../../../src/runner/restate/sdk.ts'
import { objectKey, createSyncObject } from '../../../src/runner/restate/sync-object.ts'
import { TurnRunner, type TurnRunnerOptions } from '../../../src/runner/restate/turn-runner.ts'
import { StoreClock } from '../../../src/runner/store-clock.ts'
import type { RunnerFixture } from '../runner-fixture.ts'

type Handler = (ctx: object, input: unknown) => Promise<unknown>

/**
 * Simulates Restate's guarantees for an object under a virtual clock: sequential calls of `run`, timers, a journal
 * from which a call resumes elsewhere, and cancellation. Crashes happen on request of a test.
 */
export class FakeRestate {
  readonly calls: Call[] = []
  /** A call that is cancelled while it waits is dropped. Restate does so later, when it may have begun. */
  losesCancels = false
  readonly #scene: RunnerFixture
  readonly #states = new Map<string, Map<string, unknown>>()
  readonly #sdk = fakeSdk()
  #handlers: Record<string, Handler> = {}
  #process: FakeProcess | null = null

  constructor(scene: RunnerFixture) {
    this.#scene = scene
  }

  /** Starts a process with this worker file; the previous one is killed. */
  serve(syncs: readonly DeclaredSync[], options: Partial<TurnRunnerOptions> = {}): FakeProcess {
    const process = new FakeProcess(this.#scene, syncs, options)
    this.#process?.die()
    this.#process = process
    const definition = createSyncObject({
      sdk: this.#sdk,
      worker: syncs[0]?.plan.worker ?? 'shop',
      findJob: (key) => process.jobs.get(key),
      turns: process.turns,
      clock: process.clock,
      pauseMs: 1_000,
      turnMaxMs: 60_000,
    }) as unknown as { handlers: Record<string, Handler> }
    this.#handlers = definition.handlers
    for (const call of this.calls) if (call.isRunning) this.#attempt(call)
    return process
  }

  async call(sync: string, method: string, input: unknown = {}): Promise<unknown> {
    const call = this.#add({ key: objectKey({ tenant: this.#scene.store.tenant, sync }), method, input, at: -Infinity })
    return call.answer
  }

  /** The process is killed, or Restate believes so; another attempt follows. */
  crash(sync: string): void {
    for (const call of this.calls) if (call.isRunning && call.key.endsWith(`/${sync}`)) this.#attempt(call)
  }

  /** Timers and waiting calls. */
  pending(sync: string): Call[] {
    return this.calls.filter(({ key, isEnded }) => !isEnded && key.endsWith(`/${sync}`))
  }

  state(sync: string): Record<string, unknown> {
    return Object.fromEntries(this.#stateOf(objectKey({ tenant: this.#scene.store.tenant, sync })))
  }

  #stateOf(key: string): Map<string, unknown> {
    let state = this.#states.get(key)
    if (state === undefined) this.#states.set(key, (state = new Map()))
    return state
  }

  #add({
    key,
    method,
    input,
    at,
    idempotencyKey,
  }: {
    key: string
    method: string
    input: unknown
    at: number
    idempotencyKey?: string
  }): Call {
    const same =
      idempotencyKey === undefined
        ? undefined
        : this.calls.find((call) => call.key === key && call.idempotencyKey === idempotencyKey)
    if (same !== undefined) return same
    const call = new Call(`inv_${this.calls.length}`, key, method, input, at, idempotencyKey)
    this.calls.push(call)
    const waitMs = at - this.#scene.time.now()
    if (waitMs > 0) void this.#scene.time.sleep(waitMs).then(() => this.#startNext(key))
    else this.#startNext(key)
    return call
  }

  #startNext(key: string): void {
    const own = this.calls.filter(
      (call) => call.key === key && !call.isEnded && !call.isRunning && call.at <= this.#scene.time.now(),
    )
    for (const call of own) {
      if (call.method !== 'run') this.#attempt(call)
      else if (!this.calls.some((other) => other.key === key && other.isRunning && other.method === 'run'))
        this.#attempt(call)
    }
  }

  #attempt(call: Call): void {
    call.isRunning = true
    call.attempt.abort(new Error('this attempt is over'))
    const attempt = (call.attempt = new AbortController())
    const handler = this.#handlers[call.method]!
    const end = (settle: () => void): void => {
      if (attempt.signal.aborted) return
      call.isRunning = false
      call.isEnded = true
      attempt.abort(new Error('this attempt is over'))
      settle()
      this.#startNext(call.key)
    }
    handler(this.#context(call, attempt.signal), call.input).then(
      (value) => end(() => call.resolve(value)),
      (error: unknown) => {
        if (error instanceof Terminal) end(() => call.reject(error))
        // Not terminal: retried shortly after.
        else if (!attempt.signal.aborted) void this.#scene.time.sleep(100).then(() => this.#attempt(call))
      },
    )
  }

  #context(call: Call, attempt: AbortSignal): object {
    let index = 0
    const never = new Promise<never>(() => {})
    /** Executed once, however often the code is repeated; not at all by an attempt that has ended. */
    const entry = <T>(act: () => T): T | Promise<never> => {
      if (attempt.aborted) return never
      const at = index++
      if (at >= call.journal.length) call.journal.push(act())
      return call.journal[at] as T
    }
    const state = this.#stateOf(call.key)
    return {
      key: call.key,
      request: () => ({ id: call.id, attemptCompletedSignal: attempt }),
      get: async (name: string) => entry(() => state.get(name) ?? null),
      set: (name: string, value: unknown) => void entry(() => state.set(name, structuredClone(value))),
      date: { now: async () => entry(() => this.#scene.time.now()) },
      run: async (_: string, act: () => unknown) => {
        if (attempt.aborted) return never
        const at = index++
        if (at >= call.journal.length) {
          const outcome = await Promise.race([
            Promise.resolve(act()).then((value) => ({ value })),
            call.cancelled.then(() => ({ cancelled: true as const })),
          ])
          if (attempt.aborted) return never
          call.journal[at] = outcome
        }
        const outcome = call.journal[at] as { value: unknown } | { cancelled: true }
        if ('cancelled' in outcome) throw new Cancelled('cancelled')
        return structuredClone(outcome.value)
      },
      genericSend: ({
        key,
        method,
        parameter,
        delay = 0,
        idempotencyKey,
      }: {
        key: string
        method: string
        parameter: unknown
        delay?: number
        idempotencyKey?: string
      }) => {
        const sent = entry(() =>
          this.#add({
            key,
            method,
            input: structuredClone(parameter),
            at: this.#scene.time.now() + delay,
            ...(idempotencyKey !== undefined && { idempotencyKey }),
          }),
        )
        return { invocationId: sent instanceof Promise ? never : Promise.resolve(sent.id) }
      },
      invocation: (id: string) => ({ cancel: () => void entry(() => this.#cancel(id)) }),
    }
  }

  #cancel(id: string): void {
    const call = this.calls.find((one) => one.id === id)!
    if (call.isRunning) call.cancel()
    else if (!this.losesCancels) call.isEnded = true
  }
}

export class FakeProcess {
  readonly clock: StoreClock
  readonly turns: TurnRunner
  readonly jobs: Map<string, Job>

  constructor(scene: RunnerFixture, syncs: readonly DeclaredSync[], options: Partial<TurnRunnerOptions>) {
    this.clock = new StoreClock(scene.time)
    this.jobs = new Map(syncs.map((sync) => new Job(scene.store, sync, 0.5)).map((job) => [objectKey(job.ref), job]))
    this.turns = new TurnRunner({
      clock: this.clock,
      ports: scene.ports(),
      fetch: () => Promise.reject(new Error('no network here')),
      secrets: { get: (name) => name },
      holder: `host:${++processes}:ab`,
      concurrency: 4,
      pollMs: 1_000,
      sliceMs: 60_000,
      onEvent: (event) => scene.events.push(event),
      ...options,
    })
  }

  /** Simulates a kill: it reads and commits nothing more. */
  die(): void {
    void this.turns.stop()
  }
}

let processes = 0

class Call {
  isRunning = false
  isEnded = false
  attempt = new AbortController()
  readonly journal: unknown[] = []
  readonly answer: Promise<unknown>
  readonly cancelled: Promise<void>
  resolve!: (value: unknown) => void
  reject!: (error: unknown) => void
  cancel!: () => void
  readonly id: string
  readonly key: string
  readonly method: string
  readonly input: unknown
  readonly at: number
  readonly idempotencyKey: string | undefined

  constructor(id: string, key: string, method: string, input: unknown, at: number, idempotencyKey: string | undefined) {
    this.id = id
    this.key = key
    this.method = method
    this.input = input
    this.at = at
    this.idempotencyKey = idempotencyKey
    this.answer = new Promise((resolve, reject) => Object.assign(this, { resolve, reject }))
    this.answer.catch(() => {})
    this.cancelled = new Promise((resolve) => (this.cancel = resolve))
  }
}

class Terminal extends Error {}
class Cancelled extends Terminal {}

function fakeSdk(): Sdk {
  const take = (...given: unknown[]): unknown => given.at(-1)
  return {
    object: (definition: object) => definition,
    handlers: { object: { exclusive: take, shared: take } },
    serde: { json: null },
    TerminalError: Terminal,
    CancelledError: Cancelled,
    InvocationIdParser: { fromString: (id: string) => id },
  } as unknown as Sdk
}
