import { Command, Option } from 'commander'
import type { Pause, SchemaDrift, Store, Verification, Webhook } from '../../contract/index.ts'
import { toDestinationDocument } from '../../destinations/loop/destination-document.ts'
import { readDestinationOverviews, type DestinationOverview } from '../../destinations/loop/destination-overview.ts'
import { isRangeName } from '../../engine/range-plan.ts'
import { systemClock } from '../../platform/clock.ts'
import type { DueTime } from '../../runner/due.ts'
import type { Health } from '../../runner/health.ts'
import {
  describeColumnRuleChange,
  findColumnRuleChanges,
  type ColumnRuleChange,
} from '../../runner/column-rule-changes.ts'
import { isShown } from '../../runner/status.ts'
import { describeDrift } from '../../values/describe-drift.ts'
import { hasTenantData } from '../../runner/watch-tenants.ts'
import { toCertificateDocument } from '../../verify/certificate-document.ts'
import { countOpen, toOutcome } from '../../verify/describe-report.ts'
import { computeWebhookState, toWebhookDocument } from '../../webhooks/manage-webhooks.ts'
import { parseCount } from '../kit/arguments.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { describeCounts, formatNumber, totalRows } from '../kit/counts.ts'
import { formatAgo, formatDuration } from '../kit/duration.ts'
import { formatDestinations } from '../kit/format-destinations.ts'
import { isoTime } from '../kit/json-document.ts'
import { openExistingStoreOfAnyTenant, openExistingStore } from '../kit/open-existing-store.ts'
import { toPrintable } from '../kit/printable.ts'
import { redactTidemark } from '../../redaction/redact-state.ts'
import { adviceFor } from '../kit/report-error.ts'
import {
  describeSchedule,
  QUARANTINED_COUNT_MAX,
  readSyncStatus,
  type SyncStatusRequest,
  type LeaseHolder,
  type SyncStatusDetails,
} from '../kit/sync-status.ts'
import { shortenTidemark } from '../kit/shorten-tidemark.ts'
import { formatTable } from '../kit/table.ts'
import { addTargetFlags } from '../kit/target-flags.ts'
import {
  printTarget,
  resolveStoreTarget,
  targetDocument,
  withStoreFlags,
  loadWorkerTarget,
  type Target,
  type TargetFlags,
  type WorkerTarget,
} from '../kit/target.ts'

interface StatusFlags extends TargetFlags {
  readonly watch?: boolean | number
  readonly all?: boolean
  readonly allTenants?: boolean
  readonly reveal?: boolean
}

const WATCH_SECONDS = 2
/** Read sequentially, a thousand tenants would take a minute on PostgreSQL. */
const TENANTS_CONCURRENT_MAX = 8

export function statusVerb(): Command {
  return withStoreFlags(new Command('status'))
    .summary('show the status of every sync')
    .description(
      'Shows the health, tidemark, lag, last cycle and next cycle of every sync of the worker, and the health, lag and last error of its destinations.',
    )
    .addOption(
      new Option('--watch [seconds]', 'refresh every N seconds until Ctrl-C')
        .argParser(parseCount)
        .preset(WATCH_SECONDS),
    )
    .option('--all', 'show the syncs of all workers; needs no worker file')
    .addOption(new Option('--all-tenants', 'show every tenant of the store').conflicts('watch'))
    .option('--reveal', 'show raw cursor values')
}

export const status: VerbAction<[StatusFlags]> = async (cli, flags) => {
  const target = flags.all === true ? resolveStoreTarget(cli, flags) : await loadWorkerTarget(cli, flags)
  if (flags.allTenants === true) return await showTenants(cli, target, flags)
  if (flags.watch === undefined) {
    printTarget(cli, target)
    showOnce(cli, target, await readStatusView(target), flags)
    return
  }
  const seconds = typeof flags.watch === 'number' ? flags.watch : WATCH_SECONDS
  const stopping = cli.listenForStop('Stopping the display. Syncs keep running.')
  printTarget(cli, target)
  cli.terminal.enterFullScreen()
  try {
    while (!stopping.aborted && !cli.terminal.closed.aborted) {
      const view = await readStatusView(target)
      if (cli.terminal.isInteractive) cli.terminal.draw(formatStatus(cli, view, flags))
      else showOnce(cli, target, view, flags)
      await systemClock.sleep(seconds * 1_000, stopping).catch(() => {})
    }
  } finally {
    cli.terminal.leaveFullScreen()
  }
}

async function showTenants(cli: Cli, target: Target | WorkerTarget, flags: StatusFlags): Promise<void> {
  const { terminal } = cli
  const documents: object[] = []
  const store = await openExistingStoreOfAnyTenant(target)
  try {
    const stores =
      store === null ? [] : (await store.tenants()).map((tenant) => ({ tenant, own: store.forTenant(tenant) }))
    for (let at = 0; at < stores.length; at += TENANTS_CONCURRENT_MAX) {
      const views = await Promise.all(
        stores.slice(at, at + TENANTS_CONCURRENT_MAX).map(async ({ tenant, own }) => {
          return (await hasTenantData(own))
            ? { tenant, view: await readStatusViewFrom(own, { ...target, tenant }) }
            : null
        }),
      )
      for (const { tenant, view } of views.filter((found) => found !== null)) {
        documents.push({ tenant, ...statusDocument(view, flags) })
        if (!terminal.json)
          terminal.print(
            ...(documents.length > 1 ? [''] : []),
            terminal.colors.bold(`tenant ${toPrintable(tenant)}`),
            ...formatStatus(cli, view, flags),
          )
      }
    }
  } finally {
    await store?.close()
  }
  if (terminal.json) terminal.printDocument({ ...targetDocument(target), tenants: documents })
  else if (documents.length === 0) terminal.print('The store has no tenants yet.')
}

function showOnce(cli: Cli, target: Target | WorkerTarget, view: StatusView, flags: StatusFlags): void {
  const { terminal } = cli
  if (!terminal.json) return terminal.print(...formatStatus(cli, view, flags))
  terminal.printDocument({ ...targetDocument(target), ...statusDocument(view, flags) })
}

function formatStatus(
  cli: Cli,
  { now, syncs, webhooks, headSequence, pauses, drift, destinations, ruleChanges, verifications }: StatusView,
  { all = false, reveal = false, watch }: StatusFlags,
): string[] {
  if (syncs.length === 0 && destinations.length === 0)
    return [all ? 'No sync has run in this store yet.' : 'This worker declares no syncs.']
  return [
    ...formatSyncTable(cli, syncs, now, {
      all,
      reveal,
      columns: watch !== undefined && cli.terminal.isInteractive ? WATCH_COLUMNS : STATUS_COLUMNS,
    }),
    ...syncs.flatMap((details) => formatRemarks(cli, details, now)),
    ...pauses.map((pause) => formatPause(cli, pause, now)),
    ...formatDrift(cli, drift),
    ...ruleChanges.flatMap((change) => formatRuleChange(cli, change)),
    ...(destinations.length === 0 ? [] : ['', ...formatDestinations(cli, destinations, now)]),
    ...webhooks.map((webhook) => formatWebhook(cli, webhook, headSequence)),
    ...verifications.map((verification) => formatVerification(cli, verification, now)),
  ]
}

/** Webhooks belong to the tenant, not to a worker. */
interface StatusView {
  readonly now: number
  readonly syncs: readonly SyncStatusDetails[]
  readonly webhooks: readonly Webhook[]
  readonly headSequence: number
  /** Pauses requested by sources, such as rate limits. */
  readonly pauses: readonly (Pause & { readonly worker: string })[]
  /** Fields that the columns of the tables cannot hold. */
  readonly drift: readonly SchemaDrift[]
  /** The destinations of the worker; with `--all`, all that the store knows. */
  readonly destinations: readonly DestinationOverview[]
  /** Databases whose rows do not follow the declared column rules yet. */
  readonly ruleChanges: readonly ColumnRuleChange[]
  /** The last verification of every database that has one. */
  readonly verifications: readonly Verification[]
}

async function readStatusView(target: Target | WorkerTarget): Promise<StatusView> {
  const store = await openExistingStore(target)
  try {
    return await readStatusViewFrom(store, target)
  } finally {
    await store?.close()
  }
}

async function readStatusViewFrom(store: Store | null, target: Target | WorkerTarget): Promise<StatusView> {
  const { now, syncs: known } = await readSyncStatus(store, await listSyncs(store, target))
  const syncs = known.filter(isShown)
  const pauses = await readPauses(store, [...new Set(syncs.map(({ worker }) => worker))])
  return {
    now,
    syncs,
    webhooks: (await store?.webhooks()) ?? [],
    headSequence: (await store?.headSequence()) ?? 0,
    pauses,
    drift: (await store?.schemaDrift()) ?? [],
    verifications: (await store?.lastVerifications()) ?? [],
    ruleChanges:
      store === null || !('worker' in target)
        ? []
        : await findColumnRuleChanges(store, target.worker.plans(), systemClock),
    destinations: await readDestinationOverviews(
      store,
      'worker' in target ? (target.worker.destinations?.() ?? []) : [],
      now,
    ),
  }
}

async function readPauses(store: Store | null, workers: readonly string[]): Promise<StatusView['pauses']> {
  const found: Array<StatusView['pauses'][number]> = []
  for (const worker of workers) {
    const { pauses = [] } = (await store?.pauses({ worker, at: systemClock.now() })) ?? {}
    found.push(...pauses.map((pause) => ({ worker, ...pause })))
  }
  return found
}

/** Declared syncs in declaration order, then stored syncs that the worker no longer declares. */
async function listSyncs(store: Store | null, target: Target | WorkerTarget): Promise<SyncStatusRequest[]> {
  const stored = store === null ? [] : await store.syncs()
  if (!('worker' in target)) return stored.map((ref) => ({ ref, declared: null }))
  const declared = target.worker.manifest.syncs.map((sync) => ({
    ref: { worker: target.name, sync: sync.name },
    declared: sync,
  }))
  const names = new Set(declared.map(({ ref }) => ref.sync))
  const undeclared = stored
    .filter(({ worker, sync }) => worker === target.name && !names.has(sync))
    .map((ref) => ({ ref, declared: null }))
  return [...declared, ...undeclared]
}

// ── JSON output ─────────────────────────────────────────────────────────────────────────────────────────────────────

function statusDocument(
  { now, syncs, webhooks, headSequence, pauses, drift, destinations, ruleChanges, verifications }: StatusView,
  { reveal = false }: StatusFlags,
): object {
  return {
    at: isoTime(now),
    syncs: syncs.map((details) => syncDocument(details, reveal)),
    webhooks: webhooks.map((webhook) => toWebhookDocument(webhook, headSequence)),
    pauses: pauses.map(({ worker, pacer, origin, until }) => ({
      worker,
      pacer: pacer || null,
      origin: origin || null,
      until: isoTime(until),
    })),
    ...(destinations.length > 0 && { destinations: destinations.map(toDestinationDocument) }),
    ...(verifications.length > 0 && {
      certificates: verifications.map((one) => ({
        database: one.database,
        ...toCertificateDocument(one),
        ageMs: Math.max(0, now - one.startedAt),
      })),
    }),
    ...(ruleChanges.length > 0 && { columnRules: ruleChanges }),
    ...(drift.length > 0 && { schemaDrift: drift.map(({ at, ...rest }) => ({ ...rest, at: isoTime(at) })) }),
  }
}

function syncDocument(details: SyncStatusDetails, reveal: boolean): object {
  const {
    worker,
    sync,
    health,
    declared,
    checkpoint,
    lastCycle: last,
    lagMs,
    due,
    leaseHolder,
    backfillNeeded,
    quarantined,
    drift,
  } = details
  return {
    worker,
    sync,
    health,
    declared: declared !== null,
    mode: declared?.mode ?? last?.mode ?? null,
    schedule: declared === null ? null : declared.schedule,
    ...(declared?.after !== undefined && { after: declared.after }),
    databases: declared?.databases ?? [],
    tidemark: redactTidemark(checkpoint.tidemark, reveal),
    lagMs,
    version: checkpoint.version,
    lastCycle:
      last === null
        ? null
        : {
            cycle: last.cycle,
            trigger: last.trigger,
            startedAt: isoTime(last.startedAt),
            endedAt: isoTime(last.endedAt),
            stopReason: last.stopReason,
            endReason: last.endReason,
            pages: last.pages,
            counts: last.counts,
            retries: last.retries,
            waitedMs: last.waitedMs,
          },
    unfinished:
      checkpoint.inflight === null
        ? null
        : {
            cycle: checkpoint.inflight.cycle,
            pages: checkpoint.inflight.page,
            startedAt: isoTime(checkpoint.inflight.startedAt),
          },
    lastSuccessAt: isoTime(checkpoint.lastSuccessAt),
    backfillNeeded:
      backfillNeeded === null ? null : { since: isoTime(backfillNeeded.since), reason: backfillNeeded.reason },
    next: due === null ? null : toNextDocument(due),
    triggeredAt: isoTime(checkpoint.triggeredAt),
    failures: checkpoint.failures,
    retryAt: isoTime(checkpoint.retryAt),
    lastError:
      checkpoint.lastError === null
        ? null
        : {
            code: checkpoint.lastError.code,
            message: checkpoint.lastError.message,
            advice: adviceFor(checkpoint.lastError.code, sync),
            at: isoTime(checkpoint.lastError.at),
          },
    heldBy: leaseHolder?.holder ?? null,
    heldUntil: isoTime(leaseHolder?.until ?? null),
    runner:
      leaseHolder === null
        ? null
        : {
            host: leaseHolder.location?.host ?? null,
            pid: leaseHolder.location?.pid ?? null,
            since: isoTime(leaseHolder.since),
            leaseLeftMs: leaseHolder.remainingMs,
            gone: leaseHolder.isGone,
          },
    quarantined,
    ...(drift !== null && { drift }),
  }
}

function toNextDocument(due: DueTime): object {
  if (due.kind === 'at') return { at: isoTime(due.at), why: due.why }
  return { at: null, why: due.why, ...(due.why === 'after' && { waitingFor: due.waitingFor }) }
}

// ── Text output ───────────────────────────────────────────────────────────────────────────────────────────────────────

function formatSyncTable(
  { terminal: { colors } }: Cli,
  syncs: readonly SyncStatusDetails[],
  now: number,
  options: { all: boolean; reveal: boolean; columns: readonly StatusColumn[] },
): string[] {
  const paint: Record<Health, (text: string) => string> = {
    HEALTHY: colors.green,
    INITIALIZING: colors.cyan,
    WARNING: colors.yellow,
    ERROR: colors.red,
    PAUSED: colors.dim,
  }
  const cells: Record<StatusColumn, (details: SyncStatusDetails) => string> = {
    SYNC: ({ worker, sync }) => (options.all ? `${worker}/${sync}` : sync),
    HEALTH: ({ health }) => paint[health](health),
    MODE: ({ declared, lastCycle: last }) => declared?.mode ?? last?.mode ?? '-',
    SCHEDULE: ({ sync, declared }) =>
      declared === null ? describeUndeclared(sync, options.all) : describeSchedule(declared.schedule),
    TIDEMARK: ({ checkpoint }) => {
      const tidemark = redactTidemark(checkpoint.tidemark, options.reveal) ?? '-'
      return options.columns === WATCH_COLUMNS ? shortenTidemark(tidemark, now) : tidemark
    },
    LAG: ({ lagMs }) => (lagMs === null ? '-' : formatDuration(lagMs)),
    VERSION: ({ checkpoint }) => String(checkpoint.version),
    'LAST CYCLE': (details) => formatLastCycle(details, now),
    NEXT: (details) => formatNextRun(details, now),
  }
  return formatTable(
    options.columns.map((title) => colors.bold(title)),
    syncs.map((details) => options.columns.map((title) => cells[title](details))),
  )
}

function describeUndeclared(sync: string, all: boolean): string {
  if (isRangeName(sync)) return 'range read'
  return all ? '-' : 'not declared'
}

type StatusColumn = (typeof STATUS_COLUMNS)[number]

const STATUS_COLUMNS = [
  'SYNC',
  'HEALTH',
  'MODE',
  'SCHEDULE',
  'TIDEMARK',
  'LAG',
  'VERSION',
  'LAST CYCLE',
  'NEXT',
] as const
/** A watched table is cut to the width of the screen, so the columns that change come first. */
const WATCH_COLUMNS: readonly StatusColumn[] = ['SYNC', 'HEALTH', 'TIDEMARK', 'LAG', 'NEXT', 'LAST CYCLE']

function formatLastCycle({ lastCycle: last, leaseHolder }: SyncStatusDetails, now: number): string {
  if (last === null) return 'never ran'
  if (last.endedAt !== null)
    return `${last.stopReason ?? 'ended'}${last.endReason === null ? '' : ` (${last.endReason})`} ${formatAgo(last.endedAt, now)}: ${describeCounts(last.counts)}`
  if (leaseHolder?.isGone !== false)
    return `interrupted, started ${formatAgo(last.startedAt, now)}: ${describeCounts(last.counts)}`
  const perSecond = Math.round(totalRows(last.counts) / Math.max(1, (now - last.startedAt) / 1_000))
  return `running for ${formatDuration(now - last.startedAt)}: ${formatNumber(last.pages)} ${last.pages === 1 ? 'page' : 'pages'}, ${describeCounts(last.counts)}, ${formatNumber(perSecond)} rows/s`
}

function formatNextRun({ due, leaseHolder }: SyncStatusDetails, now: number): string {
  if (leaseHolder?.isGone === false) return 'now'
  if (due === null) return '-'
  if (due.kind === 'never') return due.why === 'after' ? `waiting for ${due.waitingFor.join(', ')}` : due.why
  const when = due.at <= now ? 'due' : formatAgo(due.at, now)
  return due.why === 'schedule' ? when : `${when} (${due.why})`
}

function formatRuleChange({ terminal: { colors }, targetFlags }: Cli, change: ColumnRuleChange): string[] {
  return [
    `${colors.yellow('•')} ${toPrintable(describeColumnRuleChange(change))}.`,
    `  ${addTargetFlags(change.command, targetFlags)}`,
    ...(change.rewrite === undefined
      ? []
      : [`  or, without reading the source: ${addTargetFlags(change.rewrite, targetFlags)}`]),
  ]
}

function formatRemarks({ terminal: { colors }, targetFlags }: Cli, details: SyncStatusDetails, now: number): string[] {
  const {
    sync,
    declared,
    checkpoint: { lastError, failures, inflight },
    leaseHolder,
    backfillNeeded,
    quarantined,
    drift,
  } = details
  const lines: string[] = []
  if (failures > 0 && lastError !== null) {
    lines.push(
      `${colors.red('✗')} ${sync}: failed ${failures === 1 ? 'once' : `${failures} times in a row`}, last ${formatAgo(lastError.at, now)}: ${colors.bold(lastError.code)} ${toPrintable(lastError.message)}`,
    )
    lines.push(`  ${addTargetFlags(adviceFor(lastError.code, sync), targetFlags)}`)
  }
  const isReported = failures > 0 && lastError?.code === 'HISTORY_LOST' && declared?.pair === null
  if (backfillNeeded !== null && declared?.pair !== 'delta' && !isReported) {
    lines.push(
      `${colors.yellow('•')} ${sync}: needs a backfill since ${formatAgo(backfillNeeded.since, now)}: ${toPrintable(backfillNeeded.reason)}`,
    )
    lines.push(
      declared?.pair === null
        ? `  ${addTargetFlags(adviceFor('HISTORY_LOST', sync), targetFlags)}`
        : '  The scheduler or the next `tidemark run` starts it. Until then changes may be missing.',
    )
  }
  if (leaseHolder !== null) {
    lines.push(
      leaseHolder.isGone
        ? `${colors.yellow('•')} ${sync}: the lease of ${describeHolder(leaseHolder)} is abandoned; the next run takes over.`
        : `${colors.cyan('▸')} ${sync}: run by ${describeHolder(leaseHolder)}${leaseHolder.since === null ? '' : `, lease acquired ${formatAgo(leaseHolder.since, now)}`}, expires in ${formatDuration(leaseHolder.remainingMs)}`,
    )
  } else if (inflight !== null)
    lines.push(
      `${colors.yellow('•')} ${sync}: cycle ${inflight.cycle} is unfinished after ${formatNumber(inflight.page)} pages; the next run continues it.`,
    )
  if (drift !== null) lines.push(`${colors.yellow('•')} ${sync}: records changed shape: ${toPrintable(drift)}.`)
  if (quarantined > 0)
    lines.push(
      `${colors.yellow('•')} ${sync}: ${quarantined >= QUARANTINED_COUNT_MAX ? `at least ${formatNumber(QUARANTINED_COUNT_MAX)}` : formatNumber(quarantined)} ${quarantined === 1 ? 'record is' : 'records are'} quarantined.`,
    )
  return lines
}

function formatPause({ terminal: { colors } }: Cli, { pacer, origin, until }: Pause, now: number): string {
  const account = [origin || 'the source', ...(pacer === '' ? [] : [`pacer ${pacer}`])].join(', ')
  return `${colors.yellow('•')} ${toPrintable(account)}: requests are paused until ${isoTime(until)}, ${formatAgo(until, now)}.`
}

const DRIFT_LINES_MAX = 10

function formatDrift({ terminal: { colors } }: Cli, drift: readonly SchemaDrift[]): string[] {
  const lines = drift
    .slice(0, DRIFT_LINES_MAX)
    .map(
      (item) =>
        `${colors.yellow('•')} ${toPrintable(describeDrift(item))}. Run \`tidemark schema plan ${toPrintable(item.database)}\`.`,
    )
  return drift.length > DRIFT_LINES_MAX
    ? [...lines, `${colors.yellow('•')} and ${formatNumber(drift.length - DRIFT_LINES_MAX)} more fields.`]
    : lines
}

function formatWebhook({ terminal: { colors } }: Cli, webhook: Webhook, headSequence: number): string {
  const { id, sequence, waiting, failed, disabledReason } = webhook
  const marks = { enabled: colors.green('✓'), failing: colors.yellow('•'), disabled: colors.red('✗') }
  const state = computeWebhookState(webhook)
  const counts = [
    [headSequence - sequence, 'behind'],
    [waiting, 'pending'],
    [failed, 'failed'],
  ] as const
  return `${marks[state]} webhook ${id}: ${disabledReason === null ? state : `disabled: ${toPrintable(disabledReason)}`}${counts
    .filter(([number]) => number > 0)
    .map(([number, what]) => `, ${formatNumber(number)} ${what}`)
    .join('')}`
}

function formatVerification(
  { terminal: { colors } }: Cli,
  { id, database, startedAt, report }: Verification,
  now: number,
): string {
  if (report === null) return ''
  const outcome = toOutcome(report)
  const isGood = outcome === 'equal' || outcome === 'repaired'
  const mark = isGood ? colors.green('✓') : outcome === 'unsettled' ? colors.yellow('•') : colors.red('✗')
  const open = countOpen(report)
  const differences = open > 0 ? `, ${formatNumber(open)} ${open === 1 ? 'row differs' : 'rows differ'}` : ''
  return `${mark} ${database}: ${outcome} when verified ${formatAgo(startedAt, now)} (verification ${id}, ${formatNumber(report.rows)} rows by ${report.method})${differences}`
}

function describeHolder({ holder, location }: LeaseHolder): string {
  return location === null
    ? toPrintable(holder)
    : `process ${location.pid} on ${toPrintable(location.host)} (${toPrintable(holder)})`
}
