import type { SyncDocument } from '../../src/server/console/documents.ts'
import { formatSchedule } from './format.ts'

/** The status of a sync for its operator: health, and whether the copy is late. In the order of urgency. */
export const CONDITIONS = ['error', 'late', 'warning', 'initializing', 'healthy', 'paused'] as const
export type Condition = (typeof CONDITIONS)[number]

export const CONDITION_LABELS: Record<Condition, string> = {
  error: 'Error',
  late: 'Late',
  warning: 'Warning',
  initializing: 'Initializing',
  healthy: 'Healthy',
  paused: 'Paused',
}

export function findCondition({ health, lateAt }: SyncDocument, now: number): Condition {
  if (health === 'ERROR') return 'error'
  if (health === 'PAUSED') return 'paused'
  if (health === 'WARNING') return 'warning'
  if (lateAt !== null && Date.parse(lateAt) < now) return 'late'
  return health === 'INITIALIZING' ? 'initializing' : 'healthy'
}

/** Syncs with the same problem, and the next step. */
export interface Cause {
  /** Identifies it in the URL. */
  readonly key: string
  readonly title: string
  readonly condition: Condition
  /** The newest message; null if there is none. */
  readonly message: string | null
  readonly advice: string
  /** The newest failure. */
  readonly at: string | null
  readonly href?: string
  readonly syncs: readonly SyncDocument[]
}

type SingleCause = Omit<Cause, 'syncs'>

/** Groups the syncs that need attention by their cause: the most urgent first, then the most frequent. */
export function groupCauses(syncs: readonly SyncDocument[], now: number): Cause[] {
  const groups = new Map<string, Omit<SingleCause, 'condition'> & { condition: Condition; syncs: SyncDocument[] }>()
  for (const sync of syncs) {
    const cause = findCause(sync, now)
    if (cause === null) continue
    const group = groups.get(cause.key)
    if (group === undefined) groups.set(cause.key, { ...cause, syncs: [sync] })
    else {
      if ((cause.at ?? '') > (group.at ?? '')) Object.assign(group, { message: cause.message, at: cause.at })
      if (rank(cause.condition) < rank(group.condition)) group.condition = cause.condition
      group.syncs.push(sync)
    }
  }
  return [...groups.values()]
    .map((cause) => (cause.syncs.length === 1 ? cause : { ...cause, advice: generalize(cause) }))
    .toSorted((a, b) => rank(a.condition) - rank(b.condition) || b.syncs.length - a.syncs.length)
}

export function findCauseKey(sync: SyncDocument, now: number): string | null {
  return findCause(sync, now)?.key ?? null
}

function rank(condition: Condition): number {
  return CONDITIONS.indexOf(condition)
}

function findCause(sync: SyncDocument, now: number): SingleCause | null {
  const { connection, lastError, failures, backfillNeeded } = sync
  const condition = findCondition(sync, now)
  if (condition !== 'error' && condition !== 'warning' && condition !== 'late') return null
  if (connection?.status === 'needs_reauthorization')
    return {
      key: `connection ${connection.name}`,
      title: `Connection ${connection.name} needs to be authorized`,
      condition,
      message: connection.statusReason,
      advice: 'Authorize it again. Its syncs then continue where they stopped.',
      at: null,
      href: `/connections?search=${encodeURIComponent(connection.name)}`,
    }
  if (failures > 0 && lastError !== null) {
    const host = findHost(lastError.message)
    return {
      key: [lastError.code, host].filter((part) => part !== null).join(' '),
      title: [lastError.code, host].filter((part) => part !== null).join(' · '),
      condition,
      message: lastError.message,
      advice: lastError.advice,
      at: lastError.at,
    }
  }
  if (backfillNeeded !== null)
    return {
      key: 'lost-changes',
      title: 'Changes were lost',
      condition,
      message: backfillNeeded.reason,
      advice: 'The scheduler runs a backfill. Until it is complete, changes may be missing.',
      at: backfillNeeded.since,
    }
  return condition === 'late' ? { ...describeLate(sync), condition, at: sync.lateAt } : null
}

export function findLateAdvice(sync: SyncDocument): string {
  return describeLate(sync).advice
}

function describeLate({ next, isRunning, heldBy }: SyncDocument): Pick<Cause, 'key' | 'title' | 'message' | 'advice'> {
  if (next?.waitingFor !== undefined)
    return {
      key: 'late waiting',
      title: 'Late: waiting for other syncs',
      message: `Waiting for ${next.waitingFor.join(', ')}.`,
      advice: 'The sync starts when they have completed. Look at their last cycles.',
    }
  if (isRunning)
    return {
      key: 'late running',
      title: 'Late: the cycle takes longer than usual',
      message: null,
      advice: 'Look at its retries and waits. A schedule with longer intervals or a pacer may help.',
    }
  return {
    key: heldBy === null ? 'late idle' : 'late held',
    title: heldBy === null ? 'Late: no process runs the sync' : 'Late: a process holds the sync but runs no cycle',
    message: null,
    advice: 'Check that `tidemark start` runs with this worker, and whether it has free slots.',
  }
}

/** The host of the first URL in a message: syncs that fail at the same host have the same cause. */
function findHost(message: string): string | null {
  return /\bhttps?:\/\/([^\s/:?#"'`<>]{1,253})/.exec(message)?.[1] ?? null
}

/** The advice for several syncs: their commands name any of them. */
function generalize({ advice, syncs: [first] }: Cause): string {
  const name = first?.sync ?? ''
  return advice
    .split('`')
    .map((part, at) => (at % 2 === 1 && part.endsWith(` ${name}`) ? `${part.slice(0, -name.length)}<sync>` : part))
    .join('`')
}

/** The texts that a search of the overview finds. */
export function listSearchTexts(sync: SyncDocument): readonly string[] {
  const { tenant, worker, databases, mode, schedule, connection, lastError, failures } = sync
  return [
    sync.sync,
    worker,
    tenant,
    ...databases,
    mode ?? '',
    formatSchedule(schedule),
    connection?.name ?? '',
    failures > 0 && lastError !== null ? `${lastError.code} ${lastError.message}` : '',
  ]
}
