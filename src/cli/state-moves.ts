import { NEVER_RUN, SyncError, type AuditEntry, type Checkpoint, type StateText, type SyncRef } from '../contract/index.ts'
import { systemClock } from '../platform/clock.ts'
import { holderName, isDeadHolder } from '../platform/holder.ts'
import { maskSecrets } from '../redaction/known-secrets.ts'
import { moveState, resetOf, type Reset } from '../runner/move-state.ts'
import { actorName } from './actor.ts'
import type { Act, Cli } from './cli.ts'
import { grouped } from './counts.ts'
import { findSync } from './find-sync.ts'
import { openForReading } from './open-for-reading.ts'
import { printable } from './printable.ts'
import { describeState, stateDocument } from './state-document.ts'
import { RefusedError } from './report-error.ts'
import { parseStateArgument } from './state-argument.ts'
import { announce, openTargetStore, targetDocument, workerTarget, type TargetFlags, type WorkerTarget } from './target.ts'

interface MoveFlags extends TargetFlags {
  readonly reason: string
  readonly yes?: boolean
  readonly ifVersion?: number
}

interface CopyFlags extends Omit<MoveFlags, 'reason'> {
  readonly reason?: string
}

interface RewindFlags extends Omit<MoveFlags, 'reason'> {
  readonly to: number
  readonly reason?: string
}

export const stateSet: Act<[string, string, MoveFlags]> = async (cli, name, json, flags) => {
  await moving(cli, flags, name, async ({ ref }) => ({
    state: await parseStateArgument(json, ref), reason: flags.reason, next: 'goes on from the state you give',
  }))
}

export const stateReset: Act<[string, MoveFlags]> = async (cli, name, flags) => {
  await moving(cli, flags, name, async () => ({ state: null, reason: flags.reason, next: null }))
}

export const stateRewind: Act<[string, RewindFlags]> = async (cli, name, flags) => {
  await moving(cli, flags, name, async ({ ref, audit }) => {
    const reason = flags.reason ?? `rewound to version ${flags.to}`
    const state = stateOfVersion(ref, flags.to === 0 ? [] : await audit(), flags.to)
    return { state, reason, next: `goes on from the state of version ${flags.to}, and reads again what came after it` }
  })
}

export const stateCopy: Act<[string, string, CopyFlags]> = async (cli, from, to, flags) => {
  await moving(cli, flags, to, async ({ ref, other }) => {
    const { version, committed } = await other(from)
    if (committed === null) throw new SyncError('ARGUMENT_INVALID', `${from} has no committed state to copy.`)
    if (ref.sync === from) throw new SyncError('ARGUMENT_INVALID', `${from} has that state already.`)
    return { state: committed, reason: flags.reason ?? `copied from version ${version} of ${from}`, next: `goes on from where ${from} stands` }
  })
}

/** The state that a version had; version 0 is before the first. */
export function stateOfVersion(ref: SyncRef, audit: readonly AuditEntry[], wanted: number): StateText {
  if (wanted === 0) return null
  const moves = audit.filter(movesState)
  const found = moves.find(({ version }) => version === wanted)
  if (found !== undefined) return found.state
  const known = moves.slice(0, 10).map(({ version }) => version).join(', ')
  throw new SyncError('ARGUMENT_INVALID', `${ref.sync} has no version ${wanted} in its log${known === '' ? '' : `; the newest are ${known}`}.`)
}

interface Subject {
  readonly ref: SyncRef
  audit(): Promise<AuditEntry[]>
  /** Where another sync of the worker stands. */
  other(name: string): Promise<Checkpoint>
}

export const AUDIT_MAX = 100_000

/** Others only pause, resume or give up. */
export function movesState({ action }: AuditEntry): boolean {
  return action === 'complete' || action === 'set'
}

interface Intent {
  readonly state: StateText
  readonly reason: string
  /** What the next cycle does. Null when there is no state: see resetOf. */
  readonly next: string | null
}

interface Move extends Reset {
  readonly state: StateText
  readonly reason: string
}

/** Plans first, on what is stored now; moves only with --yes, and only if it is still that. */
async function moving(
  cli: Cli, flags: Omit<MoveFlags, 'reason'>, name: string, intend: (on: Subject) => Promise<Intent>,
): Promise<void> {
  const target = await workerTarget(cli, flags)
  announce(cli, target)
  const store = flags.yes === true ? await openTargetStore(target) : await openForReading(target)
  try {
    const ref = await findSync(target, store, name)
    const before = store === null ? NEVER_RUN : await store.read(ref, { forRepair: true })
    const intended = await intend({
      ref,
      audit: async () => store?.audit(ref, { limit: AUDIT_MAX }) ?? [],
      other: async (sync) => {
        const found = await findSync(target, store, sync)
        return store === null ? NEVER_RUN : store.read(found)
      },
    })
    const reason = maskSecrets(intended.reason)
    const declared = target.worker.manifest.syncs.some((sync) => sync.name === ref.sync) ? target.worker.plan(ref.sync) : null
    const intent: Move = { state: intended.state, reason, ...(intended.state === null ? resetOf(declared, reason) : { next: intended.next! }) }
    if (intent.reason.trim() === '') throw new SyncError('ARGUMENT_INVALID', 'The reason is empty. It is kept in the audit, for whoever wonders later.')
    if (flags.ifVersion !== undefined && flags.ifVersion !== before.version) {
      throw new SyncError('VERSION_CONFLICT', `${ref.sync} is at version ${before.version}, not ${flags.ifVersion}. Its state was not changed.`)
    }
    const plan = planOf(target, ref, before, intent)
    if (flags.yes !== true || store === null) {
      cli.terminal.remark(...planLines(ref, before, intent))
      throw new RefusedError('CONFIRMATION_NEEDED', `Nothing was changed: the state of ${ref.sync} (worker ${ref.worker}, tenant ${target.tenant}, ${target.store}) moves only with --yes.`, plan)
    }
    const owner = declared?.owner ?? `${ref.worker}/${ref.sync}`
    const { version } = await moveState(store, ref, { state: intent.state, reason, owner, version: before.version, needsBackfill: intent.needsBackfill }, {
      clock: systemClock, actor: actorName(), holder: `cli:${holderName()}`, isDead: isDeadHolder,
    })
    if (cli.terminal.json) cli.terminal.document({ ...plan, version })
    else cli.terminal.print(`${ref.sync} is at version ${version}: ${describeState(intent.state, false)}. The next cycle ${intent.next}.`)
  } finally {
    await store?.close()
  }
}

function planOf(target: WorkerTarget, ref: SyncRef, before: Checkpoint, intent: Move): object {
  return {
    ...targetDocument(target), sync: ref.sync, reason: intent.reason,
    from: { version: before.version, committed: stateDocument(before.committed, false) },
    to: { committed: stateDocument(intent.state, false) },
    givesUp: before.inflight === null ? null : { cycle: before.inflight.cycle, pages: before.inflight.page },
    nextCycle: intent.next,
    needsBackfill: intent.needsBackfill?.sync ?? null,
  }
}

function planLines(ref: SyncRef, { version, committed, inflight }: Checkpoint, intent: Move): string[] {
  return [
    `The plan for ${ref.sync}:`,
    `  forgets     ${committed === null ? 'no state: there is none' : `the committed state ${describeState(committed, false)} of version ${version} (it stays in the log, for rewind)`}`,
    ...(inflight === null ? [] : [`  gives up    cycle ${inflight.cycle}, unfinished after ${grouped(inflight.page)} pages; the rows it landed stay`]),
    `  stores      ${describeState(intent.state, false)} as version ${version + 1}`,
    '  keeps       every row and the whole log',
    `  next cycle  ${intent.next}`,
    `  reason      ${printable(intent.reason)}`,
    '',
  ]
}
