import { randomBytes } from 'node:crypto'
import { Command, Option } from 'commander'
import type { Change, Checkpoint, JsonValue, Page, PartitionReader, StateText } from '../../contract/index.ts'
import { checkPage, parseState, type CheckedPage } from '../../engine/check-page.ts'
import { PageTransformer } from '../../engine/page-transformer.ts'
import { PagePreparer } from '../../engine/page-preparer.ts'
import { readStoredPartitions } from '../../engine/stored-partitions.ts'
import type { SyncPlan } from '../../engine/sync-plan.ts'
import { parseCountOrZero } from '../kit/arguments.ts'
import { callSource, type SourceCallOptions } from '../../runner/call-source.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { formatDuration } from '../kit/duration.ts'
import { RawJson } from '../kit/json-document.ts'
import { openExistingStore } from '../kit/open-existing-store.ts'
import { createRuntime } from '../kit/create-runtime.ts'
import { toPrintable } from '../kit/printable.ts'
import { describeState, stateDocument } from '../kit/state-document.ts'
import { parseStateArgument } from '../kit/state-argument.ts'
import { truncateToWidth, formatTable } from '../kit/table.ts'
import { openTargetPauses } from '../kit/target-pauses.ts'
import {
  printTarget,
  targetDocument,
  withStoreFlags,
  loadWorkerTarget,
  type TargetFlags,
  type WorkerTarget,
} from '../kit/target.ts'

interface PreviewFlags extends TargetFlags {
  readonly state?: string
  readonly fromStart?: boolean
  readonly limit: number
  readonly reveal?: boolean
}

export function previewVerb(): Command {
  return withStoreFlags(new Command('preview'))
    .summary('read one page of a sync without writing it')
    .description(
      'Reads one page from the source, starting at the stored state of the sync or at a given state, and shows it. Writes no rows and no state. Waits like a cycle when the source is rate-limited, and stores the pause.',
    )
    .argument('<sync>', 'the sync to preview')
    .addOption(
      new Option('--state <json>', 'start at this state; - reads it from standard input').conflicts('fromStart'),
    )
    .option('--from-start', 'start without a state, as on the first call')
    .addOption(new Option('--limit <n>', 'changes to show; 0 for all').argParser(parseCountOrZero).default(10))
    .option('--reveal', 'show the raw states')
}

export const preview: VerbAction<[string, PreviewFlags]> = async (cli, name, flags) => {
  const stopping = cli.listenForStop()
  const target = await loadWorkerTarget(cli, flags)
  const plan = target.worker.plan(name)
  printTarget(cli, target)
  const given = flags.state === undefined ? undefined : await parseStateArgument(flags.state, plan)
  const { request, page: untransformed } = await readPage(cli, stopping, target, plan, {
    given,
    fromStart: flags.fromStart === true,
  })
  const page = await transformPage(target, plan, untransformed)
  const { landings, quarantined } = await new PagePreparer(plan.sync, plan.databases, plan.limits).prepare(page.changes)
  const changes = flags.limit === 0 ? page.changes : page.changes.slice(0, flags.limit)
  const reveal = flags.reveal === true

  if (cli.terminal.json) {
    cli.terminal.printDocument({
      ...targetDocument(target),
      sync: plan.sync,
      mode: plan.mode,
      asked: { from: request.from, state: stateDocument(request.state, reveal) },
      changes: page.changes.length,
      shown: changes.map((change) => changeDocument(change, reveal)),
      landable: landings.length,
      quarantined: quarantined.map(({ database, key, code, message }) => ({ database, key, code, message })),
      hasMore: page.hasMore,
      nextState: stateDocument(page.state, reveal),
    })
    return
  }
  printPage(cli, plan, page, changes)
  for (const { key, code, message } of quarantined)
    cli.terminal.print(
      `${cli.terminal.colors.yellow('quarantined')} ${toPrintable(key ?? '(no key)')}  ${code}: ${toPrintable(message)}`,
    )
  cli.terminal.print(
    '',
    `started at  ${STATE_ORIGIN_TEXT[request.from]}: ${describeState(request.state, reveal)}`,
    `has more    ${page.hasMore ? 'yes' : 'no'}`,
    `next state  ${describeState(page.state, reveal)}`,
  )
  cli.terminal.remark('', 'Nothing was written.')
  if (page.hasMore && page.state !== null) {
    cli.terminal.remark(
      reveal
        ? `Next page: npx tidemark preview ${plan.sync} --reveal --state '${page.state.replaceAll("'", `'\\''`)}'`
        : 'Add --reveal to see the state and the command for the next page.',
    )
  }
}

const STATE_ORIGIN_TEXT = {
  argument: 'the given state',
  start: 'no state, as on the first call',
  inflight: 'the state of the unfinished cycle',
  committed: 'the committed state',
} as const

interface PreviewRequest {
  readonly from: keyof typeof STATE_ORIGIN_TEXT
  readonly state: StateText
  readonly pacers: Readonly<Record<string, number>>
}

interface PreviewStart {
  readonly given: StateText | undefined
  readonly fromStart: boolean
}

/** Opens the store only if the stored state is needed. */
async function readPage(
  cli: Cli,
  stopping: AbortSignal,
  target: WorkerTarget,
  plan: SyncPlan,
  { given, fromStart }: PreviewStart,
): Promise<{ request: PreviewRequest; page: CheckedPage }> {
  const read = async (
    request: PreviewRequest,
    partitions?: PartitionReader,
  ): Promise<{ request: PreviewRequest; page: CheckedPage }> => ({
    request,
    page: await callForPage(cli, stopping, target, plan, request, partitions),
  })
  if (given !== undefined) return read({ from: 'argument', state: given, pacers: {} })
  const store = fromStart ? null : await openExistingStore(target)
  if (store === null) return read({ from: 'start', state: null, pacers: {} })
  try {
    const ref = { worker: plan.worker, sync: plan.sync }
    const next = nextCycleState(plan, await store.readCheckpoint(ref))
    return await read(
      { ...next, pacers: await store.lastSlotTimes(plan.worker) },
      readStoredPartitions({ call: (body) => body(store) }, ref),
    )
  } finally {
    await store.close()
  }
}

/** The state that the next cycle would start with. */
function nextCycleState(plan: SyncPlan, { inflight, committed }: Checkpoint): Omit<PreviewRequest, 'pacers'> {
  if (inflight !== null && inflight.mode === plan.mode)
    return { from: inflight.page === 0 && inflight.state === null ? 'start' : 'inflight', state: inflight.state }
  if (plan.mode === 'replace' || committed === null) return { from: 'start', state: null }
  return { from: 'committed', state: committed }
}

async function callForPage(
  cli: Cli,
  stopping: AbortSignal,
  target: WorkerTarget,
  plan: SyncPlan,
  request: PreviewRequest,
  partitions?: PartitionReader,
): Promise<CheckedPage> {
  const store = plan.connection == null ? null : await openExistingStore(target)
  const pauses = openTargetPauses(target)
  const onWait: SourceCallOptions['onWait'] = ({ ms, code }) =>
    cli.terminal.remark(`waiting ${formatDuration(ms)} (${code})`)
  try {
    return await callSource(
      await createRuntime(cli, target),
      stopping,
      {
        tenant: target.tenant,
        plan,
        store,
        pacers: request.pacers,
        pauses,
        onWait,
        ...(partitions !== undefined && { partitions }),
      },
      async (context) => {
        const page = (await plan.execute(parseState(plan.sync, request.state) as JsonValue, context)) as
          | Page
          | { error: unknown }
        if (typeof page === 'object' && page !== null && !('changes' in page) && 'error' in page) throw page.error
        return checkPage(plan.sync, page, plan.limits.stateBytesMax)
      },
    )
  } finally {
    await pauses.close()
    await store?.close()
  }
}

/** Without a store, the hashes and ciphertexts of columns are computed with a temporary key. */
async function transformPage(target: WorkerTarget, plan: SyncPlan, page: CheckedPage): Promise<CheckedPage> {
  const store = plan.databases.some(({ columns }) => columns !== undefined) ? await openExistingStore(target) : null
  try {
    return await PageTransformer.createPreview(plan, store, randomBytes).transformPage(page)
  } finally {
    await store?.close()
  }
}

function printPage({ terminal }: Cli, plan: SyncPlan, page: CheckedPage, changes: readonly Change[]): void {
  const [firstDatabase] = plan.databases
  const hasSeveral = plan.databases.length > 1
  const room = Math.max(40, terminal.columns - 40)
  const rows = changes.map((change) => [
    change.type,
    change.key === null ? '-' : toPrintable(String(change.key), 60),
    ...(hasSeveral ? [change.database ?? firstDatabase?.name ?? '-'] : []),
    change.type === 'upsert' ? truncateToWidth(toPrintable(stringifyRecord(change.record)), room) : '',
  ])
  if (rows.length > 0)
    terminal.print(...formatTable(['CHANGE', 'KEY', ...(hasSeveral ? ['DATABASE'] : []), 'RECORD'], rows))
  const more = page.changes.length - changes.length
  terminal.print(
    `${page.changes.length} ${page.changes.length === 1 ? 'change' : 'changes'}${more > 0 ? `, showing the first ${changes.length} (--limit 0 shows all)` : ''}`,
  )
}

/** The record is not validated yet, so it may be any value. */
function stringifyRecord(record: unknown): string {
  try {
    return (
      JSON.stringify(record, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value)) ??
      String(record)
    )
  } catch {
    return '(not serializable as JSON)'
  }
}

function changeDocument(change: Change, reveal: boolean): object {
  const { type, key, database } = change
  // The reason is in the list of quarantined records, where it is masked.
  if (change.type === 'invalid') return { type, key, database }
  const facts = { type, key, database, upstreamUpdatedAt: change.upstreamUpdatedAt }
  if (change.type === 'delete') return facts
  return { ...facts, record: new RawJson(change.record), ...(reveal ? { cursor: change.cursor } : {}) }
}
