import type { ScheduleInput } from '../../config/schedule.ts'
import type { SyncOptions } from '../../worker/sync-options.ts'
import { Worker } from '../../worker/worker.ts'
import type { Change, Page, SyncContext } from '../../contract/index.ts'
import type { FixtureChange, FixturePage } from './source-server-fixture.ts'

/** The syncs of the fixture worker. */
export interface FixtureWorkerOptions {
  /** Address of the source fixture. */
  readonly url: string
  /** Different for every process: the fixture's request log identifies the caller by it. */
  readonly process: string
  readonly leaseMs: number
  /** Number of continuous syncs (c0, c1, …) and of manual ones (m0, m1, …). */
  readonly continuous?: number
  readonly manual?: number
  /**
   * Number of further scheduled syncs (s0, s1, …), alternately every minute since the last and at every full minute.
   */
  readonly scheduled?: number
  /** Whether to declare `child`, which runs after `m0` and the pair `items`. */
  readonly child?: boolean
  /** Requests per second that all continuous syncs may make together. */
  readonly perSecond?: number
}

/**
 * The worker under test: `minutely` and `yearly` on schedule, `m0` … manual, `c0` … continuous, `s0` … by the minute,
 * and the pair `items-backfill` and `items`. The tenant is the secret TENANT.
 */
export function createFixtureWorker({
  url,
  process,
  leaseMs,
  continuous = 0,
  manual = 2,
  scheduled = 0,
  child = false,
  perSecond,
}: FixtureWorkerOptions): Worker {
  const worker = new Worker({ name: 'stage' })
  const database = worker.database('rows')
  const limits = { leaseTtlMs: leaseMs }

  const ask = async <T>(context: SyncContext, sync: string, table: string, what: string): Promise<T> => {
    const answer = await context.fetch(`${url}/${context.secrets.get('TENANT')}/${table}/${what}`, {
      headers: { 'x-sync': sync, 'x-process': process, 'x-cycle': String(context.cycle.id) },
    })
    if (!answer.ok) throw new Error(`the fixture answered ${answer.status}`)
    return (await answer.json()) as T
  }
  type State = { after: number }
  const read =
    (sync: string, table: string, what: 'list' | 'changes') =>
    async (state: State | undefined, context: SyncContext): Promise<Page<State>> => {
      const { rows, next, more } = await ask<FixturePage>(context, sync, table, `${what}?after=${state?.after ?? 0}`)
      return { changes: rows.map(toChange), hasMore: more, nextState: { after: next } }
    }
  const paced =
    perSecond === undefined ? {} : { pacer: worker.pacer('budget', { allowedRequests: perSecond, intervalMs: 1_000 }) }
  const declare = (sync: string, schedule: ScheduleInput, pace: Pick<SyncOptions, 'pacer'> = {}): void => {
    worker.sync(sync, {
      database,
      mode: 'incremental',
      schedule,
      limits,
      execute: read(sync, sync, 'changes'),
      ...pace,
    })
  }
  declare('minutely', '1m')
  declare('yearly', { cron: '0 0 1 1 *' })
  for (let i = 0; i < manual; i++) declare(`m${i}`, 'manual')
  for (let i = 0; i < scheduled; i++) declare(`s${i}`, i % 2 === 0 ? '1m' : { cron: '* * * * *' })
  for (let i = 0; i < continuous; i++) declare(`c${i}`, 'continuous', paced)
  worker.track('items', {
    database: worker.database('items'),
    schedule: 'manual',
    limits,
    source: {
      backfill: read('items-backfill', 'items', 'list'),
      delta: read('items', 'items', 'changes'),
      anchor: async (context) => ({ after: await ask<number>(context, 'items-backfill', 'items', 'position') }),
    },
  })
  if (child) {
    const execute = read('child', 'child', 'changes')
    worker.sync('child', { database, mode: 'incremental', after: ['m0', 'items'], limits, execute })
  }
  return worker
}

function toChange({ key, value }: FixtureChange): Change {
  return value === null ? { type: 'delete', key } : { type: 'upsert', key, record: { value } }
}
