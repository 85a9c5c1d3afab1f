import {
  isSyncError,
  SyncError,
  type Change,
  type Execute,
  type JsonObject,
  type Page,
  type SyncContext,
} from '../../contract/index.ts'
import { lowerHorizon, measureRequest, pinHorizon } from '../../strategies/kit/horizon.ts'
import { formatIso } from '../../strategies/kit/instants.ts'
import type { KeysetState } from '../../strategies/index.ts'
import type { HttpClient } from '../kit/http-client.ts'
import { createJob, deleteJob, hasJobsLeft, readJob, readResults } from './bulk-job.ts'
import { parseBulkRecords } from './bulk-records.ts'
import type { DescribedField } from './describe.ts'

/**
 * A listing by a query job of Bulk API 2.0. Every step is one request and one page, so that a resumed cycle continues the
 * same job:
 *
 *   count ──many──▶ limits ──▶ create ──▶ wait ──complete──▶ read ──last set──▶ check ──counts agree──▶ delete ──▶ end
 *     │ few           │ none left │ refused  └─ ▲ running      └─ ▲ more sets ▲    │ too few
 *     ▼               ▼           ▼                                           └────┘ the last set is read once more
 *    rest            rest        rest
 *
 * A job that failed, aged out or contradicts its own count rejects the state: the cycle starts again with a new job, and
 * nothing is swept.
 */
export type BulkState = { readonly bulk: BulkStep }

type BulkStep =
  | { readonly step: 'count' | 'limits' | 'create' }
  | (RunningJob & { readonly step: 'wait'; readonly polls: number })
  | (RunningJob & ReadPosition & { readonly step: 'read'; readonly isRepeated?: true })
  | (RunningJob &
      ReadPosition & {
        readonly step: 'check'
        /** The records including those of the last set. */
        readonly count: number
        readonly isRepeated?: true
      })
  | (RunningJob & { readonly step: 'delete' })

interface RunningJob {
  readonly job: string
  /** The job shows every change up to this time. */
  readonly untilMs: number
}

/** Where the next set of results begins. */
interface ReadPosition {
  /** Null for the first set. */
  readonly locator: string | null
  /** The records of the sets before. */
  readonly seen: number
  /** The last key of the set before. */
  readonly last: string | null
}

export interface BulkListingOptions {
  readonly client: HttpClient
  readonly mode: 'auto' | true
  /** `auto` creates a job only for more records than this. */
  readonly above: number
  /** Records of one set of results. */
  readonly limit: number
  readonly lagMs: number
  /** The fields to read, or why Bulk cannot read them. */
  readonly plan: (context: SyncContext) => Promise<BulkPlan>
  readonly buildSoql: (columns: readonly string[]) => string
  readonly toChange: (record: JsonObject) => Change
  /** Counts the records of the listing. */
  readonly count: (context: SyncContext) => Promise<number>
  /** The same listing, page by page. */
  readonly rest: Execute<KeysetState>
}

export type BulkPlan = { readonly fields: readonly DescribedField[] } | { readonly obstacle: string }

/** Reads a listing by a query job, or page by page where a job would not pay or is not possible. */
export function bulkListing(options: BulkListingOptions): Execute<KeysetState | BulkState> {
  const { client, mode, above, plan, count, rest, lagMs } = options

  const execute: Execute<KeysetState | BulkState> = async (state, context) => {
    if (state !== undefined && !isBulkState(state)) return rest(state, context)
    const step = state === undefined ? null : readStep(state)
    switch (step?.step) {
      case undefined: {
        const planned = await plan(context)
        if ('fields' in planned) return continueWith({ step: mode === 'auto' ? 'count' : 'limits' })
        context.log[mode === 'auto' ? 'info' : 'warn']('Bulk API 2.0 is not used', { reason: planned.obstacle })
        return rest(undefined, context)
      }
      case 'count':
        return (await isAbove(context)) ? continueWith({ step: 'limits' }) : rest(undefined, context)
      case 'limits':
        if (await hasJobsLeft(client, context)) return continueWith({ step: 'create' })
        context.log.warn('Bulk API 2.0 is not used', { reason: 'the org has no query jobs left today' })
        return rest(undefined, context)
      case 'create':
        return create(context)
      case 'wait':
        return wait(step, context)
      case 'read':
        return read(step, context)
      case 'check':
        return check(step, context)
      case 'delete':
        await deleteJob(client, step.job, context)
        return { changes: [], hasMore: false, isLog: true, tidemark: formatIso(step.untilMs) }
    }
    return step satisfies never
  }

  const isAbove = async (context: SyncContext): Promise<boolean> => {
    try {
      return (await count(context)) > above
    } catch (error) {
      // A query that the server cannot finish counts a large object.
      if (isSyncError(error) && error.code === 'SOURCE_UNAVAILABLE') return true
      throw error
    }
  }

  const requireFields = async (context: SyncContext): Promise<readonly DescribedField[]> => {
    const planned = await plan(context)
    if ('fields' in planned) return planned.fields
    throw rejectJob(planned.obstacle)
  }

  const create = async (context: SyncContext): Promise<Page<KeysetState | BulkState>> => {
    const fields = await requireFields(context)
    const soql = options.buildSoql(fields.map(({ name }) => name))
    const { answer: created, tookMs } = await measureRequest(context, () => createJob(client, soql, context))
    if (created === null) {
      context.log.warn('Bulk API 2.0 is not used', { reason: 'Salesforce refused the query job' })
      return rest(undefined, context)
    }
    const pinnedMs = pinHorizon('salesforce', context.cycle, lagMs, undefined)
    const untilMs = lowerHorizon(pinnedMs, lagMs, created, tookMs)
    return continueWith({ step: 'wait', job: created.job, untilMs, polls: 0 })
  }

  const wait = async (
    { job, untilMs, polls }: BulkStep & { step: 'wait' },
    context: SyncContext,
  ): Promise<Page<BulkState>> => {
    if (polls > 0) await context.clock.sleep(Math.min(POLL_MS_MIN * 2 ** (polls - 1), POLL_MS_MAX), context.signal)
    const progress = await readJob(client, job, context)
    if (progress === null) throw rejectJob('it no longer exists')
    switch (progress.state) {
      case 'running':
        return continueWith({ step: 'wait', job, untilMs, polls: polls + 1 })
      case 'failed':
        throw rejectJob(progress.reason)
      case 'complete':
        return continueWith({ step: 'read', job, untilMs, locator: null, seen: 0, last: null })
    }
    return progress.state satisfies never
  }

  const read = async (step: BulkStep & { step: 'read' }, context: SyncContext): Promise<Page<BulkState>> => {
    const { job, untilMs, locator, seen, last, isRepeated } = step
    const fields = await requireFields(context)
    const results = await readResults(client, job, { locator, limit: options.limit }, context)
    if (results === null) throw rejectJob('its results no longer exist')
    const changes = parseBulkRecords(results.csv, fields, options.toChange)
    if (results.count !== null && results.count !== changes.length)
      throw new SyncError(
        'SOURCE_INVALID',
        `Salesforce returned ${changes.length} of ${results.count} records of a job: the response is incomplete.`,
      )
    const lastKey = changes.at(-1)?.key ?? null
    if (results.next === locator ? locator !== null : lastKey !== null && lastKey === last)
      throw new SyncError('SOURCE_INVALID', 'Salesforce returned the same set of results of a job twice.')
    const count = seen + changes.length
    const next: BulkStep =
      results.next === null
        ? { step: 'check', job, untilMs, locator, seen, last, count, ...(isRepeated && { isRepeated }) }
        : { step: 'read', job, untilMs, locator: results.next, seen: count, last: lastKey ?? last }
    // The job read its records before this request: rows that were written since the cycle began are newer.
    return { ...continueWith(next), changes, isLog: true }
  }

  const check = async (step: BulkStep & { step: 'check' }, context: SyncContext): Promise<Page<BulkState>> => {
    const { job, untilMs, locator, seen, last, count, isRepeated } = step
    const progress = await readJob(client, job, context)
    if (progress === null || progress.state === 'failed') throw rejectJob('its results no longer exist')
    if (progress.state === 'running')
      throw new SyncError('SOURCE_UNAVAILABLE', 'Salesforce returned an earlier state of a query job.')
    if (progress.count === count) return continueWith({ step: 'delete', job, untilMs })
    if (isRepeated === true)
      throw rejectJob(`its results have ${count} records, but it counts ${progress.count}; nothing was deleted`)
    // Either the count or the end of the results is wrong. Both are requested again.
    return continueWith({ step: 'read', job, untilMs, locator, seen, last, isRepeated: true })
  }

  return execute
}

const POLL_MS_MIN = 1_000
/** Shorter than the deadline of a page. */
const POLL_MS_MAX = 8_000

function continueWith(step: BulkStep): Page<BulkState> & { readonly hasMore: true } {
  return { changes: [], hasMore: true, nextState: { bulk: step } }
}

/** The engine starts the cycle again, which creates a new job. */
function rejectJob(reason: string): SyncError {
  return new SyncError('CURSOR_REJECTED', `The query job of Salesforce cannot be continued: ${reason}.`)
}

function isBulkState(state: unknown): state is BulkState {
  return typeof state === 'object' && state !== null && 'bulk' in state
}

const STEPS: ReadonlySet<string> = new Set(['count', 'limits', 'create', 'wait', 'read', 'check', 'delete'])

/** The state may have been edited. */
function readStep({ bulk }: BulkState): BulkStep {
  const { step, job = '', untilMs = 0, seen = 0, polls = 0 } = (bulk ?? {}) as Partial<Record<string, unknown>>
  const isValid =
    typeof step === 'string' &&
    STEPS.has(step) &&
    typeof job === 'string' &&
    [untilMs, seen, polls].every((number) => Number.isSafeInteger(number))
  if (!isValid) throw new SyncError('STATE_UNREADABLE', 'The stored state is not a step of a Salesforce job.')
  return bulk
}
