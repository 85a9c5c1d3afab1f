import { SyncError, type Destination, type DestinationMode } from '../contract/index.ts'
import { didYouMean } from '../values/did-you-mean.ts'
import { describeValue } from '../config/names.ts'
import { parseSchedule, type Schedule, type ScheduleInput } from '../config/schedule.ts'
import type { DestinationPlan } from '../destinations/loop/run-destination.ts'
import type { DatabaseHandle } from './worker.ts'

/** Options of `worker.destination`. */
export interface DestinationOptions {
  /** The databases to copy. Default: all databases of the worker. */
  databases?: readonly (DatabaseHandle | string)[]
  /** When changes are applied. Default: `continuous`, as soon as they are committed. */
  schedule?: ScheduleInput
  /**
   * `mirror` (the default): the current rows. `append`: every change is a row. `history`: every version is a row with its
   * validity.
   */
  mode?: DestinationMode
  /**
   * By database, fields whose arrays of objects become child tables: `{ orders: ['items'] }` writes `orders__items` with
   * `_parent_key` and `_index`. Only in mode `mirror`.
   */
  children?: Readonly<Record<string, readonly string[]>>
}

/** A declared destination. */
export interface DestinationHandle {
  readonly kind: 'destination'
  readonly name: string
}

/** A destination of a worker with its schedule. */
export interface DeclaredDestination extends DestinationPlan {
  readonly schedule: Schedule
}

const OPTION_NAMES = Object.keys({ databases: 0, schedule: 0, mode: 0, children: 0 } satisfies Record<
  keyof DestinationOptions,
  0
>)

/** Throws DESTINATION_INVALID or SCHEDULE_INVALID. */
export function checkDestination(
  name: string,
  destination: Destination,
  options: DestinationOptions,
): { schedule: Schedule; mode: DestinationMode } {
  const fail = failureOf(name)
  const isDestination =
    typeof destination === 'object' &&
    destination !== null &&
    typeof destination.open === 'function' &&
    Array.isArray(destination.supports?.modes)
  if (!isDestination) fail(`${describeValue(destination)} is not a destination`)
  if (typeof options !== 'object' || options === null) fail(`the options are ${describeValue(options)}`)
  const unknown = Object.keys(options).find((option) => !OPTION_NAMES.includes(option))
  if (unknown !== undefined) fail(`unknown option ${describeValue(unknown)}`, didYouMean(unknown, OPTION_NAMES))
  const { mode = 'mirror', schedule = 'continuous' } = options
  if (!destination.supports.modes.includes(mode))
    fail(`mode is ${describeValue(mode)}, but ${destination.kind} supports ${destination.supports.modes.join(', ')}`)
  return { mode, schedule: parseSchedule(schedule, `Destination "${name}"`) }
}

/** Throws DESTINATION_INVALID. `databases` are the names that `children` may have. */
export function checkChildren(
  name: string,
  { kind, supports }: Destination,
  { mode = 'mirror', children = {} }: DestinationOptions,
  databases: readonly string[],
): NonNullable<DestinationOptions['children']> {
  const fail = failureOf(name)
  if (typeof children !== 'object' || children === null || Array.isArray(children))
    fail(`children is ${describeValue(children)}, and not fields by database`)
  const entries = Object.entries<unknown>(children)
  if (entries.length > 0 && supports.children !== true) fail(`${kind} has no child tables`)
  if (entries.length > 0 && mode !== 'mirror')
    fail(`children are tables of the current rows, and the mode is ${mode}`, ' Use mode `mirror`.')
  for (const [database, fields] of entries) {
    if (!databases.includes(database))
      fail(
        `children names the database ${describeValue(database)}, which is not copied`,
        didYouMean(database, databases),
      )
    if (!Array.isArray(fields) || !fields.every((field) => typeof field === 'string' && field !== ''))
      return fail(`children of ${database} is ${describeValue(fields)}, and not a list of fields`)
    // A database that ignores case would have one table for both.
    const folded = fields.map((field: string) => field.toLowerCase())
    const twice = folded.find((field, at) => folded.indexOf(field) !== at)
    if (twice !== undefined) fail(`children of ${database} names ${describeValue(twice)} twice`)
  }
  return children
}

function failureOf(name: string): (what: string, hint?: string) => never {
  return (what, hint = '') => {
    throw new SyncError('DESTINATION_INVALID', `Destination "${name}": ${what}.${hint}`)
  }
}
