import type { ObjectContext, ObjectSharedContext, Serde, VirtualObjectDefinition } from '@restatedev/restate-sdk'
import type { SyncSignal } from '../../contract/index.ts'
import type { Job } from '../job.ts'
import { readStatus, type SyncStatus } from '../status.ts'
import type { StoreClock } from '../store-clock.ts'
import type { Sdk } from './sdk.ts'
import type { TurnResult, TurnRunner } from './turn-runner.ts'

export interface SyncObjectOptions {
  readonly sdk: Sdk
  readonly worker: string
  /** Of an object's key; undefined for a sync that this worker file does not declare. */
  readonly findJob: (key: string) => Job | undefined
  readonly turns: TurnRunner
  readonly clock: StoreClock
  readonly pauseMs: number
  /** Longer than any turn may be without a word. */
  readonly turnMaxMs: number
}

/** All that an object keeps. Where the sync stands is in the registry. */
interface ObjectState {
  /** Grows with every turn; a timer that was set for another is of no account. */
  readonly generation: number
  readonly since: number | null
  /** The call that has the turn. */
  readonly running: string | null
  readonly next: { readonly at: number; readonly timer: string; readonly isOwed: boolean } | null
}

/** Without a generation: somebody woke it. */
interface RunInput {
  readonly generation?: number
  readonly tries?: number
  /** `storeFailures` of the turn before. The name stays: calls sent by older versions may still wait in Restate. */
  readonly stumbles?: number
}

export interface SyncObjectStatus extends SyncStatus {
  /** When the object will look by itself; null when it runs, or waits for news. */
  readonly timer: number | null
}

const STATE_KEY = 'kept'
const INITIAL_STATE: ObjectState = { generation: 0, since: null, running: null, next: null }
const CANCELLED_DELAY_MS = 1_000

/** For ever: a store or a fleet that is down for a day must not leave syncs behind that wait for a person. */
const RETRY_POLICY = { initialInterval: 100, exponentiationFactor: 2, maxInterval: 5_000, maxAttempts: 2 ** 31 - 1, onMaxAttempts: 'pause' } as const

/** One per worker, so that several workers may share a cluster. */
export function serviceName(worker: string): string {
  return `tidemark.${worker}`
}

export function objectKey({ tenant, sync }: { readonly tenant: string; readonly sync: string }): string {
  return [tenant, sync].map(encodeURIComponent).join('/')
}

/**
 * A sync of a tenant as an object of Restate: its calls of `run` are made one after the other, wherever.
 *
 *   wake ──▶ run ──turn──▶ run, by a timer ──turn──▶ …      nothing due for ever: no timer, until it is woken
 *
 * Code here is repeated when a call is resumed elsewhere; only what `ctx.run` and the other calls of `ctx` returned is not.
 */
export function createSyncObject({ sdk, worker, findJob: find, turns, clock, pauseMs, turnMaxMs }: SyncObjectOptions): VirtualObjectDefinition<string, unknown> {
  const service = serviceName(worker)
  const { exclusive, shared } = sdk.handlers.object

  const keptOf = async (ctx: ObjectSharedContext): Promise<ObjectState> => (await ctx.get<ObjectState>(STATE_KEY)) ?? INITIAL_STATE
  const send = (ctx: ObjectSharedContext, call: RunInput, how: { delay?: number; idempotencyKey?: string }) =>
    ctx.genericSend({ service, method: 'run', key: ctx.key, parameter: call, inputSerde: sdk.serde.json as Serde<RunInput>, ...how })
  /** However often it is woken before its next turn, it has one for it. */
  const rouse = (ctx: ObjectSharedContext, { generation }: ObjectState) => send(ctx, {}, { idempotencyKey: `woken-${generation}` })
  const declared = (ctx: ObjectSharedContext): Job => {
    const job = find(ctx.key)
    if (job === undefined) throw new sdk.TerminalError(`The worker ${worker} has no sync for ${ctx.key}.`, { errorCode: 404 })
    return job
  }
  const signal = async (ctx: ObjectSharedContext, kind: SyncSignal['kind']): Promise<void> => {
    const { store, sync: { plan } } = declared(ctx)
    await ctx.run(kind, () => store.signalSync({ worker, sync: plan.sync }, { kind, actor: 'restate', at: clock.now() }))
  }

  const run = async (ctx: ObjectContext, { generation, tries = 0, stumbles: storeFailures = 0 }: RunInput): Promise<void> => {
    const kept = await keptOf(ctx)
    if (generation === undefined ? kept.next?.isOwed === true : generation !== kept.generation) return
    const { id, attemptCompletedSignal } = ctx.request()
    if (kept.next !== null && kept.next.timer !== id) ctx.invocation(sdk.InvocationIdParser.fromString(kept.next.timer)).cancel()
    const current = { generation: kept.generation + 1, since: kept.since, running: null, next: null }
    ctx.set<ObjectState>(STATE_KEY, { ...current, running: id })
    // Kept for certain before the turn begins: who wakes or cancels it from then on must find it so.
    await ctx.run('begin', () => {})

    const { next, since, ...left } = await takeTurn(ctx, attemptCompletedSignal, { since: kept.since, tries, storeFailures })
    if (next === null) return ctx.set<ObjectState>(STATE_KEY, { ...current, since })
    const timer = await send(ctx, { generation: current.generation, tries: left.tries, stumbles: left.storeFailures }, { delay: next.inMs }).invocationId
    ctx.set<ObjectState>(STATE_KEY, { ...current, since, next: { at: next.at, timer, isOwed: next.isThrottled } })
  }

  const takeTurn = async (ctx: ObjectContext, attempt: AbortSignal, carried: Pick<TurnResult, 'since' | 'tries' | 'storeFailures'>): Promise<TurnResult> => {
    const cancelling = new AbortController()
    let turn: Promise<unknown> = Promise.resolve()
    try {
      return await ctx.run('turn', async (): Promise<TurnResult> => {
        const job = find(ctx.key)
        // Gone from the worker file: no timer is left behind.
        if (job === undefined) return { ...carried, next: null }
        const taken = turns.runTurn(job, carried, AbortSignal.any([attempt, cancelling.signal]))
        turn = taken.catch(() => {})
        return taken
      })
    } catch (error) {
      if (!(error instanceof sdk.CancelledError)) throw error
      cancelling.abort(error)
      await turn
      return { ...carried, next: { inMs: CANCELLED_DELAY_MS, at: (await ctx.date.now()) + CANCELLED_DELAY_MS, isThrottled: false } }
    }
  }

  const wake = async (ctx: ObjectSharedContext, { at }: { at: number }): Promise<void> => {
    const kept = await keptOf(ctx)
    if (kept.next !== null && kept.next.at <= at) return
    rouse(ctx, kept)
  }

  const wakeAfter = (kind: SyncSignal['kind']) => async (ctx: ObjectSharedContext): Promise<void> => {
    await signal(ctx, kind)
    rouse(ctx, await keptOf(ctx))
  }

  /** Pauses it, so that nobody goes on with it, and does not wait for the page at hand. */
  const cancel = async (ctx: ObjectSharedContext): Promise<void> => {
    await signal(ctx, 'pause')
    const { running } = await keptOf(ctx)
    if (running !== null) ctx.invocation(sdk.InvocationIdParser.fromString(running)).cancel()
  }

  const status = async (ctx: ObjectSharedContext): Promise<SyncObjectStatus> => {
    const { store, sync } = declared(ctx)
    const { next } = await keptOf(ctx)
    const [found] = await ctx.run('status', () => readStatus({ store, syncs: [sync], now: clock.now(), pauseMs }))
    return { ...found!, timer: next?.at ?? null }
  }

  return sdk.object({
    name: service,
    description: `The syncs of the worker ${worker}; the key is tenant/sync.`,
    handlers: {
      run: exclusive({ inactivityTimeout: turnMaxMs, ingressPrivate: true }, run),
      wake: shared(wake),
      pause: shared((ctx: ObjectSharedContext) => signal(ctx, 'pause')),
      resume: shared(wakeAfter('resume')),
      trigger: shared(wakeAfter('trigger')),
      cancel: shared(cancel),
      status: shared(status),
    },
    // The registry tells what ran; what Restate keeps of calls that have ended is of no use to anybody.
    options: { retryPolicy: RETRY_POLICY, journalRetention: 0, idempotencyRetention: 60_000 },
  })
}
