import { SyncError, type Execute, type JsonValue, type SyncContext } from '../../contract/index.ts'
import { formatIso } from '../../strategies/kit/instants.ts'
import { partitioned, type Partition, type PartitionList, type PartitionPage } from '../../strategies/partitioned.ts'
import { parseInstantOrDate, instantToMs } from '../../values/instant.ts'
import { isObject } from '../kit/classify-response.ts'
import { isMarkedIncomplete, markIncomplete } from '../kit/incomplete-answers.ts'
import { getAtPath } from './field-path.ts'
import type { ListEndpoint } from './list-endpoint.ts'
import { formatTime, formatTimeAfter, requireStep, TIME_UNITS_MS } from './record-mapping.ts'
import type { Parameters, ParameterValue } from './request-template.ts'
import type { PartitionRule, WindowPartitions } from './stream.ts'

/** The stored value of a partition: parameters of its requests. */
type PartitionValue = Readonly<Record<string, string | number | boolean>>

/** A way to split a stream: the list of its partitions, and the parameters of each. */
export interface PartitionPlan {
  readonly concurrency: number
  /** Windows split the complete list only; changes are followed as one. */
  readonly isFollowed: boolean
  list(cursor: JsonValue | undefined, context: SyncContext): Promise<PartitionList<Record<string, JsonValue>>>
  toParameters(partition: Partition, context: SyncContext): Parameters
}

export interface PartitionInput {
  readonly stream: string
  readonly rule: PartitionRule
  /** The placeholders of the request. */
  readonly placeholders: readonly string[]
  /** The parameters that are added to records. */
  readonly included: readonly string[]
  readonly time: WindowPartitions['time']
  /** The complete list of another stream. */
  readonly readParent: (name: string) => Execute<any>
}

/** The names of the parameters that a partition sets. */
export function listPartitionParameters(rule: PartitionRule | undefined, placeholders: readonly string[]): string[] {
  if (rule === undefined) return []
  if ('parent' in rule) return placeholders.filter((name) => name.startsWith(PARENT_PREFIX))
  return 'values' in rule ? [VALUE_PARAMETER] : [rule.since, rule.until]
}

const PARENT_PREFIX = 'parent.'
const VALUE_PARAMETER = 'partition'

export function planPartitions(input: PartitionInput): PartitionPlan {
  const { rule, stream } = input
  const kinds = ['parent', 'values', 'from'].filter((name) => name in rule)
  if (kinds.length !== 1)
    throw new SyncError(
      'SYNC_INVALID',
      `Stream "${stream}": set one of \`parent\`, \`values\` or \`from\` in \`partitions\`.`,
    )
  const unknown = input.included.find((name) => !listPartitionParameters(rule, input.included).includes(name))
  if (unknown !== undefined)
    throw new SyncError(
      'SYNC_INVALID',
      `Stream "${stream}": \`include\` has an unknown parameter "${unknown}". Write ${'values' in rule ? '`partition`' : '`parent.` and a field'}.`,
    )
  if ('parent' in rule) return planParents(input, rule.parent, rule.concurrency ?? 1)
  if ('values' in rule) return planValues(rule.values, rule.concurrency ?? 1)
  return planWindows(input, rule)
}

function planParents(
  { stream, placeholders, included, readParent }: PartitionInput,
  parent: string,
  concurrency: number,
): PartitionPlan {
  const names = [...new Set([...placeholders, ...included].filter((name) => name.startsWith(PARENT_PREFIX)))]
  if (!placeholders.some((name) => name.startsWith(PARENT_PREFIX)))
    throw new SyncError(
      'SYNC_INVALID',
      `Stream "${stream}": no request depends on its parent. Use a field of it, such as \`{parent.id}\`, in \`path\`.`,
    )
  const read = readParent(parent)
  return {
    concurrency,
    isFollowed: true,
    async list(cursor, context) {
      // The list of parents is always read completely, whatever the mode of the children.
      const asList: SyncContext = { ...context, cycle: { ...context.cycle, mode: 'replace' } }
      const page = await read(cursor, asList)
      if (isMarkedIncomplete(asList)) markIncomplete(context)
      const partitions = page.changes.flatMap((change) => {
        if (change.type === 'invalid')
          throw new SyncError('SOURCE_INVALID', `Stream "${stream}": a record of its parent "${parent}" is invalid.`)
        if (change.type === 'delete') return []
        const value = Object.fromEntries(
          names.map((name) => [name, requireField(change.record, name.slice(PARENT_PREFIX.length), stream, parent)]),
        )
        return [{ key: change.key, value }]
      })
      return { partitions, ...(page.hasMore && { next: page.nextState as JsonValue }) }
    },
    toParameters: ({ value }) => value as PartitionValue,
  }
}

/** Without the field, the request would ask for the children of all parents, or of none. */
function requireField(record: JsonValue, field: string, stream: string, parent: string): string | number | boolean {
  const value = getAtPath(record, field)
  if (typeof value === 'bigint') return String(value)
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value
  throw new SyncError(
    'SOURCE_INVALID',
    `Stream "${stream}": a record of its parent "${parent}" has no text or number at \`${field}\`.`,
  )
}

function planValues(values: readonly string[], concurrency: number): PartitionPlan {
  return {
    concurrency,
    isFollowed: true,
    list: async () => ({ partitions: values.map((key) => ({ key, value: {} })), total: values.length }),
    toParameters: ({ key }) => ({ [VALUE_PARAMETER]: key }),
  }
}

const WINDOWS_MAX = 10_000
const DAY_MS = 86_400_000

function planWindows({ stream, time: recordTime }: PartitionInput, rule: WindowPartitions): PartitionPlan {
  const { since, until, time = recordTime } = rule
  if (since === undefined || until === undefined || rule.step === undefined)
    throw new SyncError('SYNC_INVALID', `Stream "${stream}": windows need \`since\`, \`until\` and \`step\`.`)
  const from = parseInstantOrDate(rule.from)
  if (from === null)
    throw new SyncError('SYNC_INVALID', `Stream "${stream}": \`from\` is not a date such as 2024-01-31.`)
  const stepMs = requireStep(stream, rule.step)
  const unitMs = TIME_UNITS_MS[time ?? 'iso']
  const listStarts = (nowMs: number): number[] => {
    const count = Math.max(1, Math.ceil((nowMs - instantToMs(from)) / stepMs))
    if (count > WINDOWS_MAX)
      throw new SyncError(
        'SYNC_INVALID',
        `Stream "${stream}": its windows would be ${count}, more than ${WINDOWS_MAX}. Set a longer \`step\` or a later \`from\`.`,
      )
    return Array.from({ length: count }, (_, index) => instantToMs(from) + index * stepMs)
  }
  return {
    // A record that moves to a later window is read there, if the windows are read in order.
    concurrency: 1,
    isFollowed: false,
    list: async (_, { cycle }) => {
      const starts = listStarts(cycle.startedAt)
      return { partitions: starts.map((start) => ({ key: formatIso(start), value: {} })), total: starts.length }
    },
    toParameters({ key }, { clock, cycle }) {
      const startMs = Date.parse(key)
      const endMs = startMs + stepMs
      // The last window has no end yet.
      const lastMs = endMs >= cycle.startedAt ? Math.max(endMs, clock.now() + DAY_MS) : endMs
      return {
        [since]: formatTime(new Date(startMs - unitMs).toISOString(), time),
        [until]: formatTimeAfter(new Date(lastMs + unitMs).toISOString(), time),
      }
    },
  }
}

export interface PartitionedReading {
  readonly plan: PartitionPlan
  readonly listing: ListEndpoint
  readonly lagMs: number
  /** Fields that are added to each record, with the parameter they come from. */
  readonly include: Readonly<Record<string, string>>
  /** Creates the reader of one partition. */
  readonly createReader: (listing: ListEndpoint) => Execute<any>
  /** The state of the reader from a time on, if it can begin there. */
  readonly globalState?: ((since: string) => JsonValue) | undefined
}

/** Reads a stream through its partitions. */
export function readPartitions({
  plan,
  listing,
  lagMs,
  include,
  createReader,
  globalState,
}: PartitionedReading): Execute<any> {
  return partitioned<Record<string, JsonValue>>({
    concurrency: plan.concurrency,
    lagMs,
    ...(globalState !== undefined && { globalState }),
    list: (cursor, context) => plan.list(cursor, context),
    read: async (partition, state, context) => {
      const parameters = plan.toParameters(partition, context)
      const read = createReader(bindEndpoint(listing, parameters, include))
      return (await read(state, context)) as PartitionPage<JsonValue>
    },
  })
}

/** The endpoint with the parameters of a partition. */
function bindEndpoint(
  listing: ListEndpoint,
  parameters: Parameters,
  include: Readonly<Record<string, string>>,
): ListEndpoint {
  const names = Object.entries(include)
  if (names.length === 0) return { ...listing, fixed: { ...listing.fixed, ...parameters } }
  const added = Object.fromEntries(names.map(([field, name]) => [field, parameters[name] as ParameterValue]))
  return {
    ...listing,
    fixed: { ...listing.fixed, ...parameters },
    toChange: (record) => listing.toChange(isObject(record) ? { ...record, ...added } : record),
  }
}
