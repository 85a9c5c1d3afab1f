import { SyncError } from '../contract/index.ts'
import { describeValue } from '../config/names.ts'
import { parseSchedule, type Schedule, type ScheduleInput } from '../config/schedule.ts'
import { didYouMean } from '../values/did-you-mean.ts'

/** Options of `worker.verify`. */
export interface VerificationOptions {
  /** When the copy is compared. Default: once a day. */
  schedule?: ScheduleInput
  /** Whether rows that differ are repaired. Default: false. */
  repair?: boolean
  /** The most requests of one verification. Default: no limit. */
  budget?: number
  /** Compare this many rows at random instead of all. */
  sample?: number
  /** Compare every field of every record, also if the source can compare digests. */
  full?: boolean
  /** Fields that the source computes when it is read. Differences in them do not count. */
  ignore?: readonly string[]
}

/** A declared verification. */
export interface DeclaredVerification {
  readonly database: string
  readonly schedule: Schedule
  readonly repair: boolean
  readonly budget: number | null
  readonly sample: number | null
  readonly isFull: boolean
  readonly ignore: readonly string[]
}

const OPTION_NAMES = Object.keys({
  schedule: 0,
  repair: 0,
  budget: 0,
  sample: 0,
  full: 0,
  ignore: 0,
} satisfies Record<keyof VerificationOptions, 0>)

/** Throws VERIFICATION_INVALID or SCHEDULE_INVALID. */
export function checkVerification(database: string, options: VerificationOptions): DeclaredVerification {
  const fail = (what: string, hint = ''): never => {
    throw new SyncError('VERIFICATION_INVALID', `Verification of "${database}": ${what}.${hint}`)
  }
  if (typeof options !== 'object' || options === null) fail(`the options are ${describeValue(options)}`)
  const unknown = Object.keys(options).find((option) => !OPTION_NAMES.includes(option))
  if (unknown !== undefined) fail(`unknown option ${describeValue(unknown)}`, didYouMean(unknown, OPTION_NAMES))
  const { schedule = '1d', repair = false, budget, sample, full = false, ignore = [] } = options
  for (const [name, value] of Object.entries({ repair, full }))
    if (typeof value !== 'boolean') fail(`${name} is ${describeValue(value)}, not a boolean`)
  for (const [name, value] of Object.entries({ budget, sample }))
    if (value !== undefined && !(Number.isSafeInteger(value) && value > 0))
      fail(`${name} is ${describeValue(value)}, but it must be a whole number of at least 1`)
  if (full && sample !== undefined) fail('`full` and `sample` exclude each other')
  if (!Array.isArray(ignore) || !ignore.every((name) => typeof name === 'string'))
    fail(`ignore is ${describeValue(ignore)}, not a list of fields`)
  return {
    database,
    schedule: parseSchedule(schedule, `Verification of "${database}"`),
    repair,
    budget: budget ?? null,
    sample: sample ?? null,
    isFull: full,
    ignore: [...ignore],
  }
}
