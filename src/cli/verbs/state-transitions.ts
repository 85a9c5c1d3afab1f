import {
  EMPTY_CHECKPOINT,
  SyncError,
  type AuditEntry,
  type Checkpoint,
  type PartitionChange,
  type StateFormat,
  type StateText,
  type Store,
  type SyncRef,
} from '../../contract/index.ts'
import type { SyncPlan } from '../../engine/sync-plan.ts'
import { systemClock } from '../../platform/clock.ts'
import { holderName, isHolderGone } from '../../platform/lease-holder.ts'
import { maskSecrets } from '../../redaction/known-secrets.ts'
import { applyStateTransition, planReset, type ResetPlan } from '../../runner/state-transition.ts'
import { required } from '../../values/required.ts'
import { actorName } from '../kit/actor.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { formatNumber } from '../kit/counts.ts'
import { findSync } from '../kit/find-sync.ts'
import { openExistingStore } from '../kit/open-existing-store.ts'
import { toPrintable } from '../kit/printable.ts'
import { describeState, stateDocument } from '../kit/state-document.ts'
import { RefusedError } from '../kit/report-error.ts'
import { parseStateArgument, readStateFile, serializeImportedState } from '../kit/state-argument.ts'
import {
  printTarget,
  openTargetStore,
  targetDocument,
  loadWorkerTarget,
  type TargetFlags,
  type WorkerTarget,
} from '../kit/target.ts'

interface TransitionFlags extends TargetFlags {
  readonly reason: string
  readonly yes?: boolean
  readonly ifVersion?: number
}

interface CopyFlags extends Omit<TransitionFlags, 'reason'> {
  readonly reason?: string
}

interface ImportFlags extends CopyFlags {
  readonly singer?: string
  readonly airbyte?: string
  readonly stream?: string
}

interface RewindFlags extends Omit<TransitionFlags, 'reason'> {
  readonly to: number
  readonly reason?: string
}

export const stateSet: VerbAction<[string, string, TransitionFlags]> = async (cli, name, json, flags) => {
  await transitionState(cli, flags, name, async ({ ref }) => ({
    state: await parseStateArgument(json, ref),
    reason: flags.reason,
    next: 'continues from the given state',
  }))
}

export const stateReset: VerbAction<[string, TransitionFlags]> = async (cli, name, flags) => {
  await transitionState(cli, flags, name, async () => ({ state: null, reason: flags.reason, next: null }))
}

export const stateRewind: VerbAction<[string, RewindFlags]> = async (cli, name, flags) => {
  await transitionState(cli, flags, name, async ({ ref, readAudit }) => {
    const reason = flags.reason ?? `rewound to version ${flags.to}`
    const state = findStateOfVersion(ref, flags.to === 0 ? [] : await readAudit(), flags.to)
    return { state, reason, next: `continues from the state of version ${flags.to} and re-reads later changes` }
  })
}

export const stateCopy: VerbAction<[string, string, CopyFlags]> = async (cli, from, to, flags) => {
  await transitionState(cli, flags, to, async ({ ref, readCheckpoint, readPartitions }) => {
    const { version, committed } = await readCheckpoint(from)
    if (committed === null)
      throw new SyncError('ARGUMENT_INVALID', `${from} has no committed state to copy. Run it first.`)
    if (ref.sync === from)
      throw new SyncError('ARGUMENT_INVALID', `The source and the target are both ${from}. Name two different syncs.`)
    return {
      state: committed,
      reason: flags.reason ?? `copied from version ${version} of ${from}`,
      next: `continues from the state of ${from}`,
      partitions: await readPartitions(from),
    }
  })
}

export const stateImport: VerbAction<[string, ImportFlags]> = async (cli, name, flags) => {
  const { stream } = flags
  await transitionState(cli, flags, name, async ({ ref, plan }) => {
    const { format, file, title } = chooseImport(flags)
    const convert = plan?.execute.importState?.[format]
    if (convert === undefined)
      throw new SyncError(
        'ARGUMENT_INVALID',
        `${ref.sync}: its source cannot take over the state of ${title}. Set a state with \`tidemark state set\`, or let the sync read everything.`,
      )
    const imported = convert(await readStateFile(cli.folder, file), stream)
    return {
      ...serializeImportedState(ref, imported, plan),
      reason: flags.reason ?? `imported from the state of ${title}`,
      next: `continues where ${title} stopped`,
    }
  })
}

function chooseImport({ singer, airbyte }: ImportFlags): { format: StateFormat; file: string; title: string } {
  if (singer !== undefined) return { format: 'singer', file: singer, title: 'the Singer tap' }
  if (airbyte !== undefined) return { format: 'airbyte', file: airbyte, title: 'the Airbyte connection' }
  throw new SyncError('ARGUMENT_INVALID', 'Name the state file with --singer <file> or --airbyte <file>.')
}

/** The state of a version; version 0 is the empty state before the first. */
export function findStateOfVersion(ref: SyncRef, audit: readonly AuditEntry[], wanted: number): StateText {
  if (wanted === 0) return null
  const transitions = audit.filter(isStateTransition)
  const found = transitions.find(({ version }) => version === wanted)
  if (found !== undefined) return found.state
  const known = transitions
    .slice(0, 10)
    .map(({ version }) => version)
    .join(', ')
  throw new SyncError(
    'ARGUMENT_INVALID',
    `${ref.sync} has no version ${wanted} in its audit log${known === '' ? '' : `; the newest are ${known}`}.`,
  )
}

interface TransitionContext {
  readonly ref: SyncRef
  /** Null for a sync that the worker no longer declares. */
  readonly plan: SyncPlan | null
  readAudit(): Promise<AuditEntry[]>
  /** Reads the checkpoint of another sync of the worker. */
  readCheckpoint(name: string): Promise<Checkpoint>
  /** Reads all partitions of another sync of the worker. */
  readPartitions(name: string): Promise<PartitionChange[]>
}

export const AUDIT_ENTRIES_MAX = 100_000

/** Other audit actions, such as pause and resume, do not change the state. */
export function isStateTransition({ action }: AuditEntry): boolean {
  return action === 'complete' || action === 'set'
}

interface TransitionIntent {
  readonly state: StateText
  readonly reason: string
  /** The effect on the next cycle; null when the state is reset (see planReset). */
  readonly next: string | null
  /** None by default: the partitions of the sync belong to the state that is replaced. */
  readonly partitions?: readonly PartitionChange[]
}

interface PlannedTransition extends ResetPlan {
  readonly state: StateText
  readonly reason: string
  readonly partitions: readonly PartitionChange[]
  /** Partitions whose states are removed. */
  readonly forgets: number
}

/** Plans against the stored checkpoint. Applies only with --yes, and only if the version has not changed since. */
async function transitionState(
  cli: Cli,
  flags: Omit<TransitionFlags, 'reason'>,
  name: string,
  intend: (context: TransitionContext) => Promise<TransitionIntent>,
): Promise<void> {
  const target = await loadWorkerTarget(cli, flags)
  printTarget(cli, target)
  const store = flags.yes === true ? await openTargetStore(target) : await openExistingStore(target)
  try {
    const ref = await findSync(target, store, name)
    const before = store === null ? EMPTY_CHECKPOINT : await store.readCheckpoint(ref, { forRepair: true })
    const declared = target.worker.manifest.syncs.some((sync) => sync.name === ref.sync)
      ? target.worker.plan(ref.sync)
      : null
    const intended = await intend({
      ref,
      plan: declared,
      readAudit: async () => store?.audit(ref, { limit: AUDIT_ENTRIES_MAX }) ?? [],
      readCheckpoint: async (sync) => {
        const found = await findSync(target, store, sync)
        return store === null ? EMPTY_CHECKPOINT : store.readCheckpoint(found)
      },
      readPartitions: async (sync) => {
        const found = await findSync(target, store, sync)
        return store === null ? [] : readAllPartitions(store, found)
      },
    })
    const reason = maskSecrets(intended.reason)
    const intent: PlannedTransition = {
      state: intended.state,
      reason,
      partitions: intended.partitions ?? [],
      forgets: (await store?.countPartitions(ref)) ?? 0,
      ...(intended.state === null
        ? planReset(declared, reason)
        : { nextCycle: required(intended.next, 'the effect on the next cycle') }),
    }
    if (intent.reason.trim() === '')
      throw new SyncError('ARGUMENT_INVALID', 'The reason is empty. Give a reason for the audit log with --reason.')
    if (flags.ifVersion !== undefined && flags.ifVersion !== before.version) {
      throw new SyncError(
        'VERSION_CONFLICT',
        `${ref.sync} is at version ${before.version}, not ${flags.ifVersion}. Nothing was changed.`,
      )
    }
    const plan = planDocument(target, ref, before, intent)
    if (flags.yes !== true || store === null) {
      cli.terminal.remark(...formatPlan(ref, before, intent))
      throw new RefusedError(
        'CONFIRMATION_NEEDED',
        `Nothing was changed. Add --yes to change the state of ${ref.sync} (worker ${ref.worker}, tenant ${target.tenant}, ${target.storeLabel}).`,
        plan,
      )
    }
    const owner = declared?.owner ?? `${ref.worker}/${ref.sync}`
    const { version } = await applyStateTransition(
      store,
      ref,
      {
        state: intent.state,
        reason,
        owner,
        version: before.version,
        needsBackfill: intent.needsBackfill,
        partitions: intent.partitions,
      },
      {
        clock: systemClock,
        actor: actorName(),
        holder: `cli:${holderName()}`,
        isDead: isHolderGone,
      },
    )
    if (cli.terminal.json) cli.terminal.printDocument({ ...plan, version })
    else
      cli.terminal.print(
        `${ref.sync} is at version ${version}: ${describeState(intent.state, false)}. The next cycle ${intent.nextCycle}.`,
      )
  } finally {
    await store?.close()
  }
}

const PARTITIONS_PER_PAGE = 1_000

async function readAllPartitions(store: Store, ref: SyncRef): Promise<PartitionChange[]> {
  const all: PartitionChange[] = []
  for (;;) {
    const after = all.at(-1)?.key
    const page = await store.partitions(ref, { limit: PARTITIONS_PER_PAGE, ...(after !== undefined && { after }) })
    all.push(...page.map(({ key, state }) => ({ key, state })))
    if (page.length < PARTITIONS_PER_PAGE) return all
  }
}

function planDocument(target: WorkerTarget, ref: SyncRef, before: Checkpoint, intent: PlannedTransition): object {
  return {
    ...targetDocument(target),
    sync: ref.sync,
    reason: intent.reason,
    from: { version: before.version, committed: stateDocument(before.committed, false) },
    to: { committed: stateDocument(intent.state, false) },
    givesUp: before.inflight === null ? null : { cycle: before.inflight.cycle, pages: before.inflight.page },
    partitions: { removed: intent.forgets, stored: intent.partitions.length },
    nextCycle: intent.nextCycle,
    needsBackfill: intent.needsBackfill?.sync ?? null,
  }
}

function formatPlan(ref: SyncRef, { version, committed, inflight }: Checkpoint, intent: PlannedTransition): string[] {
  return [
    `Plan for ${ref.sync}:`,
    `  replaces    ${committed === null ? 'no state' : `the committed state ${describeState(committed, false)} of version ${version} (kept in the audit log, for rewind)`}`,
    ...(inflight === null
      ? []
      : [
          `  abandons    cycle ${inflight.cycle}, unfinished after ${formatNumber(inflight.page)} pages; its rows are kept`,
        ]),
    `  stores      ${describeState(intent.state, false)} as version ${version + 1}`,
    ...(intent.forgets === 0
      ? []
      : [
          `  removes     the states of ${formatNumber(intent.forgets)} partitions, which are read again from the start`,
        ]),
    ...(intent.partitions.length === 0
      ? []
      : [`  copies      the states of ${formatNumber(intent.partitions.length)} partitions`]),
    '  keeps       all rows and the change log',
    `  next cycle  ${intent.nextCycle}`,
    `  reason      ${toPrintable(intent.reason)}`,
    '',
  ]
}
