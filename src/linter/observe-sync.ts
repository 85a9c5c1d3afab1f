import { hash } from 'node:crypto'
import type { Change, Page, Ports, Secrets, SyncContext } from '../contract/index.ts'
import { NOOP_PAUSE_STORE, type PauseStore } from '../engine/account-pauses.ts'
import { checkPage, serializeState } from '../engine/check-page.ts'
import { runCycle } from '../engine/cycle.ts'
import type { CycleOptions } from '../engine/cycle-options.ts'
import type { SyncPlan } from '../engine/sync-plan.ts'
import { openSqliteStore } from '../stores/sqlite/store.ts'
import { canonicalizeInstant } from '../values/instant.ts'
import { isSamePage } from './lint-observation.ts'
import type {
  ObservedChange,
  ObservedCycle,
  ObservedPage,
  Observation,
  PageRepeat,
  GlobalAccess,
} from './observation.ts'
import { watchGlobals } from './watch-globals.ts'

export interface ObserveOptions {
  readonly ports: Ports
  readonly fetch: CycleOptions['fetch']
  readonly secrets: Secrets
  /** Stores rate-limit pauses; by default they are not stored. */
  readonly pauses?: PauseStore
  /** The page limit of each cycle. */
  readonly pagesMax: number
  readonly workerFile: string
  readonly signal?: AbortSignal
}

/** How other syncs use the same databases. */
export type DatabaseEnvironment = Pick<Observation, 'otherWriters' | 'isSwept'>

/** The number of pages that are read twice. */
const REPEATED_PAGES_MAX = 2

/**
 * Runs one cycle of the production engine on an in-memory store, and for an incremental sync the start of the next
 * one. Nothing is persisted.
 */
export async function observeSync(
  plan: SyncPlan,
  environment: DatabaseEnvironment,
  options: ObserveOptions,
): Promise<Observation> {
  const store = await openSqliteStore({ file: ':memory:' })
  const cycles: ObservedCycle[] = []
  const repeats: PageRepeat[] = []
  const globalAccesses: GlobalAccess[] = []
  let requests = 0
  let pages: ObservedPage[] = []
  let failedOnFirstRun = false
  let changesAfterEnd: readonly ObservedChange[] | null = null

  const execute = async (state: unknown, context: SyncContext): Promise<Page> => {
    const ask = (): Promise<Page> => plan.execute(structuredClone(state), context)
    let page: Page
    try {
      page = await ask()
    } catch (error) {
      failedOnFirstRun =
        state === undefined &&
        error instanceof TypeError &&
        /of undefined|undefined is not|is undefined/.test(error.message)
      throw error
    }
    const observed = toObservedPage(plan, state, page)
    if (observed === null) return page
    pages.push(observed)
    if (cycles.length === 0 && pages.length <= REPEATED_PAGES_MAX) {
      const repeat = await repeatPage(plan, context.cycle.page, observed.changes, ask)
      if (repeat !== null) repeats.push(repeat)
    }
    if (cycles.length === 0 && !observed.hasMore && page.nextState !== undefined)
      changesAfterEnd = await readPastEnd(plan, page.nextState, context)
    return page
  }
  // The anchor is not taken, because it may change the source, such as creating a replication slot.
  const pair = plan.pair?.role === 'backfill' ? { pair: { ...plan.pair, anchor: null } } : {}
  const watched: SyncPlan = {
    ...plan,
    ...pair,
    execute,
    limits: { ...plan.limits, pagesMax: options.pagesMax, waitMaxMs: Math.min(plan.limits.waitMaxMs, 15_000) },
  }
  const run = async (number: number): Promise<void> => {
    pages = []
    const result = await runCycle(watched, {
      store,
      pauses: options.pauses ?? NOOP_PAUSE_STORE,
      ports: options.ports,
      secrets: options.secrets,
      holder: `check-${number}`,
      trigger: 'check',
      ...(options.signal === undefined ? {} : { signal: options.signal }),
      fetch: (input, init) => {
        requests++
        return options.fetch(input, init)
      },
    })
    const { committed } = await store.readCheckpoint({ worker: plan.worker, sync: plan.sync })
    cycles.push({
      startedAt: result.startedAt,
      endedAt: result.endedAt,
      pages,
      stopReason: result.stopReason,
      error: result.error,
      failedOnFirstRun,
      quarantined: await countQuarantined(store),
      committed,
    })
  }
  try {
    await watchGlobals(
      options.workerFile,
      (access) => globalAccesses.push(access),
      async () => {
        await run(1)
        // The start of the next cycle shows which state the first one left.
        if (plan.mode === 'incremental' && cycles.at(0)?.stopReason === 'complete') await run(2)
      },
    )
    return {
      sync: plan.sync,
      mode: plan.mode,
      ...environment,
      pagesMax: options.pagesMax,
      cycles,
      repeats,
      changesAfterEnd,
      globalAccesses,
      requests,
    }
  } finally {
    await store.close()
  }
}

/** Null for an invalid page, which the engine reports itself. */
function toObservedPage(plan: SyncPlan, requestedState: unknown, page: Page): ObservedPage | null {
  try {
    const { changes, hasMore, state } = checkPage(plan.sync, page, plan.limits.stateBytesMax)
    return {
      requestedState:
        requestedState === undefined ? null : serializeState(plan.sync, requestedState, plan.limits.stateBytesMax),
      nextState: state,
      hasMore,
      changes: changes.map((change) => toObservedChange(plan, change)),
    }
  } catch {
    return null
  }
}

function toObservedChange(plan: SyncPlan, change: Change): ObservedChange {
  const key = String(change.key)
  const content = change.type === 'upsert' ? digest(change.record) : ''
  const time = change.type === 'invalid' ? undefined : change.upstreamUpdatedAt
  const at = typeof time === 'string' ? canonicalizeInstant(time) : null
  return {
    type: change.type,
    key,
    rowId: `${change.database ?? plan.databases[0]?.name} ${key}`,
    contentDigest: content,
    upstreamAt: at,
  }
}

function digest(record: unknown): string {
  try {
    return hash(
      'sha1',
      JSON.stringify(record, (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value)) ?? '',
      'base64',
    )
  } catch {
    return ''
  }
}

async function repeatPage(
  plan: SyncPlan,
  page: number,
  first: readonly ObservedChange[],
  ask: () => Promise<Page>,
): Promise<PageRepeat | null> {
  try {
    const again = async (): Promise<readonly ObservedChange[]> =>
      (await ask()).changes.map((change) => toObservedChange(plan, change))
    const second = await again()
    return { page, first, second, third: isSamePage(first, second) ? null : await again() }
  } catch {
    // An occasional source failure is not a finding; the page itself was read.
    return null
  }
}

async function readPastEnd(
  plan: SyncPlan,
  state: unknown,
  context: SyncContext,
): Promise<readonly ObservedChange[] | null> {
  try {
    return (await plan.execute(structuredClone(state), context)).changes.map((change) => toObservedChange(plan, change))
  } catch {
    return null
  }
}

async function countQuarantined(store: Awaited<ReturnType<typeof openSqliteStore>>): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const { code } of await store.quarantineEntries({ limit: 10_000 })) counts[code] = (counts[code] ?? 0) + 1
  return counts
}
