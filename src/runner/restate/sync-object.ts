import type { ObjectContext, ObjectSharedContext, Serde, VirtualObjectDefinition } from '@restatedev/restate-sdk'
import type { SyncSignal } from '../../contract/index.ts'
import type { Job } from '../job.ts'
import { readStatus, type SyncStatus } from '../status.ts'
import type { StoreClock } from '../store-clock.ts'
import { required } from '../../values/required.ts'
import type { Sdk } from './sdk.ts'
import type { TurnResult, TurnRunner } from './turn-runner.ts'

export interface SyncObjectOptions {
  readonly sdk: Sdk
  readonly worker: string
  /** Undefined for a sync that this worker file does not declare. */
  readonly findJob: (key: string) => Job | undefined
  readonly turns: TurnRunner
  readonly clock: StoreClock
  readonly pauseMs: number
  /** Longer than any turn, during which nothing is sent to Restate. */
  readonly turnMaxMs: number
}

/** The state of a virtual object. The checkpoint of the sync is in the registry. */
interface ObjectState {
  /** Incremented every turn, so that timers of earlier turns are ignored. */
  readonly generation: number
  readonly since: number | null
  /** The invocation id of the current turn. */
  readonly running: string | null
  readonly next: { readonly at: number; readonly timer: string; readonly isOwed: boolean } | null
}

/** A call without a generation comes from `wake`. */
interface RunInput {
  readonly generation?: number
  readonly tries?: number
  /** `storeFailures` of the turn before. The name stays: calls sent by older versions may still wait in Restate. */
  readonly stumbles?: number
}

export interface SyncObjectStatus extends SyncStatus {
  /** Time of the object's timer; null while it runs or only a signal can make it due. */
  readonly timer: number | null
}

const STATE_KEY = 'kept'
const INITIAL_STATE: ObjectState = { generation: 0, since: null, running: null, next: null }
const CANCELLED_DELAY_MS = 1_000

/** Unlimited: an outage of a day must not leave syncs behind that need an operator. */
const RETRY_POLICY = {
  initialInterval: 100,
  exponentiationFactor: 2,
  maxInterval: 5_000,
  maxAttempts: 2 ** 31 - 1,
  onMaxAttempts: 'pause',
} as const

/** One service per worker, so that several workers can share a cluster. */
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
export function createSyncObject({
  sdk,
  worker,
  findJob,
  turns,
  clock,
  pauseMs,
  turnMaxMs,
}: SyncObjectOptions): VirtualObjectDefinition<string, unknown> {
  const service = serviceName(worker)
  const { exclusive, shared } = sdk.handlers.object

  const readState = async (ctx: ObjectSharedContext): Promise<ObjectState> =>
    (await ctx.get<ObjectState>(STATE_KEY)) ?? INITIAL_STATE
  const send = (ctx: ObjectSharedContext, call: RunInput, options: { delay?: number; idempotencyKey?: string }) =>
    ctx.genericSend({
      service,
      method: 'run',
      key: ctx.key,
      parameter: call,
      inputSerde: sdk.serde.json as Serde<RunInput>,
      ...options,
    })
  /** Idempotent: several wake-ups before the next turn result in one turn. */
  const sendWake = (ctx: ObjectSharedContext, { generation }: ObjectState) =>
    send(ctx, {}, { idempotencyKey: `woken-${generation}` })
  const requireJob = (ctx: ObjectSharedContext): Job => {
    const job = findJob(ctx.key)
    if (job === undefined)
      throw new sdk.TerminalError(`The worker ${worker} has no sync for ${ctx.key}.`, { errorCode: 404 })
    return job
  }
  const signal = async (ctx: ObjectSharedContext, kind: SyncSignal['kind']): Promise<void> => {
    const {
      store,
      sync: { plan },
    } = requireJob(ctx)
    await ctx.run(kind, () =>
      store.signalSync({ worker, sync: plan.sync }, { kind, actor: 'restate', at: clock.now() }),
    )
  }

  const run = async (
    ctx: ObjectContext,
    { generation, tries = 0, stumbles: storeFailures = 0 }: RunInput,
  ): Promise<void> => {
    const state = await readState(ctx)
    if (generation === undefined ? state.next?.isOwed === true : generation !== state.generation) return
    const { id, attemptCompletedSignal } = ctx.request()
    if (state.next !== null && state.next.timer !== id)
      ctx.invocation(sdk.InvocationIdParser.fromString(state.next.timer)).cancel()
    const current = { generation: state.generation + 1, since: state.since, running: null, next: null }
    ctx.set<ObjectState>(STATE_KEY, { ...current, running: id })
    // The state must be durable before the turn begins, so that a wake or cancel sees it.
    await ctx.run('begin', () => {})

    const { next, since, ...memory } = await takeTurn(ctx, attemptCompletedSignal, {
      since: state.since,
      tries,
      storeFailures,
    })
    if (next === null) return ctx.set<ObjectState>(STATE_KEY, { ...current, since })
    const timer = await send(
      ctx,
      { generation: current.generation, tries: memory.tries, stumbles: memory.storeFailures },
      { delay: next.inMs },
    ).invocationId
    ctx.set<ObjectState>(STATE_KEY, { ...current, since, next: { at: next.at, timer, isOwed: next.isThrottled } })
  }

  const takeTurn = async (
    ctx: ObjectContext,
    attempt: AbortSignal,
    memory: Pick<TurnResult, 'since' | 'tries' | 'storeFailures'>,
  ): Promise<TurnResult> => {
    const cancelling = new AbortController()
    let turn: Promise<unknown> = Promise.resolve()
    try {
      return await ctx.run('turn', async (): Promise<TurnResult> => {
        const job = findJob(ctx.key)
        // The sync was removed from the worker file: set no timer.
        if (job === undefined) return { ...memory, next: null }
        const result = turns.runTurn(job, memory, AbortSignal.any([attempt, cancelling.signal]))
        turn = result.catch(() => {})
        return result
      })
    } catch (error) {
      if (!(error instanceof sdk.CancelledError)) throw error
      cancelling.abort(error)
      await turn
      return {
        ...memory,
        next: { inMs: CANCELLED_DELAY_MS, at: (await ctx.date.now()) + CANCELLED_DELAY_MS, isThrottled: false },
      }
    }
  }

  const wake = async (ctx: ObjectSharedContext, { at }: { at: number }): Promise<void> => {
    const state = await readState(ctx)
    if (state.next !== null && state.next.at <= at) return
    sendWake(ctx, state)
  }

  const wakeAfter =
    (kind: SyncSignal['kind']) =>
    async (ctx: ObjectSharedContext): Promise<void> => {
      await signal(ctx, kind)
      sendWake(ctx, await readState(ctx))
    }

  /** Pauses the sync and aborts the current page. */
  const cancel = async (ctx: ObjectSharedContext): Promise<void> => {
    await signal(ctx, 'pause')
    const { running } = await readState(ctx)
    if (running !== null) ctx.invocation(sdk.InvocationIdParser.fromString(running)).cancel()
  }

  const status = async (ctx: ObjectSharedContext): Promise<SyncObjectStatus> => {
    const { store, sync } = requireJob(ctx)
    const { next } = await readState(ctx)
    const [found] = await ctx.run('status', () => readStatus({ store, syncs: [sync], now: clock.now(), pauseMs }))
    return { ...required(found, 'the status of the sync'), timer: next?.at ?? null }
  }

  return sdk.object({
    name: service,
    description: `Syncs of the worker ${worker}; the key is tenant/sync.`,
    handlers: {
      run: exclusive({ inactivityTimeout: turnMaxMs, ingressPrivate: true }, run),
      wake: shared(wake),
      pause: shared((ctx: ObjectSharedContext) => signal(ctx, 'pause')),
      resume: shared(wakeAfter('resume')),
      trigger: shared(wakeAfter('trigger')),
      cancel: shared(cancel),
      status: shared(status),
    },
    // The registry records the cycles, so Restate need not retain finished calls.
    options: { retryPolicy: RETRY_POLICY, journalRetention: 0, idempotencyRetention: 60_000 },
  })
}
