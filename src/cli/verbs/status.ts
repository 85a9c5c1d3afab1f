import { Command, Option } from 'commander'
import type { Pause, SchemaDrift, Store, Webhook } from '../../contract/index.ts'
import { systemClock } from '../../platform/clock.ts'
import type { Health } from '../../runner/health.ts'
import { describeDrift } from '../../values/describe-drift.ts'
import { hasTenantData } from '../../runner/watch-tenants.ts'
import { computeWebhookState, toWebhookDocument } from '../../webhooks/manage-webhooks.ts'
import { parseCount } from '../kit/arguments.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { describeCounts, formatNumber, totalRows } from '../kit/counts.ts'
import { formatAgo, formatDuration } from '../kit/duration.ts'
import { isoTime } from '../kit/json-document.ts'
import { openExistingStoreOfAnyTenant, openExistingStore } from '../kit/open-existing-store.ts'
import { toPrintable } from '../kit/printable.ts'
import { redactTidemark } from '../../redaction/redact-state.ts'
import { adviceFor } from '../kit/report-error.ts'
import { describeSchedule, QUARANTINED_COUNT_MAX, readSyncStatus, type SyncStatusRequest, type LeaseHolder, type SyncStatusDetails } from '../kit/sync-status.ts'
import { shortenTidemark } from '../kit/shorten-tidemark.ts'
import { formatTable } from '../kit/table.ts'
import { addTargetFlags } from '../kit/target-flags.ts'
import { printTarget, resolveStoreTarget, targetDocument, withStoreFlags, loadWorkerTarget, type Target, type TargetFlags, type WorkerTarget } from '../kit/target.ts'

interface StatusFlags extends TargetFlags {
  readonly watch?: boolean | number
  readonly all?: boolean
  readonly allTenants?: boolean
  readonly reveal?: boolean
}

const WATCH_SECONDS = 2
/** A thousand tenants one after the other would take a minute on PostgreSQL. */
const TENANTS_CONCURRENT_MAX = 8

export function statusVerb(): Command {
  return withStoreFlags(new Command('status'))
    .summary('where every sync stands')
    .description('Shows where every sync of the worker stands: its health, its tidemark, how old the copy may be, its last cycle and its next.')
    .addOption(new Option('--watch [seconds]', 'look again every so often, until Ctrl-C').argParser(parseCount).preset(WATCH_SECONDS))
    .option('--all', 'every sync in the store, of all workers; needs no worker file')
    .addOption(new Option('--all-tenants', 'of every tenant of the store, one after the other').conflicts('watch'))
    .option('--reveal', 'show cursors that stand in for a time as they are')
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
  const stopping = cli.listenForStop('Nothing is stopped but the looking.')
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
    const tenants = (await store?.tenants()) ?? []
    for (let at = 0; at < tenants.length; at += TENANTS_CONCURRENT_MAX) {
      const views = await Promise.all(tenants.slice(at, at + TENANTS_CONCURRENT_MAX).map(async (tenant) => {
        const own = store!.forTenant(tenant)
        return (await hasTenantData(own)) ? { tenant, view: await readStatusViewFrom(own, { ...target, tenant }) } : null
      }))
      for (const { tenant, view } of views.filter((found) => found !== null)) {
        documents.push({ tenant, ...statusDocument(view, flags) })
        if (!terminal.json) terminal.print(...(documents.length > 1 ? [''] : []), terminal.colors.bold(`tenant ${toPrintable(tenant)}`), ...formatStatus(cli, view, flags))
      }
    }
  } finally {
    await store?.close()
  }
  if (terminal.json) terminal.printDocument({ ...targetDocument(target), tenants: documents })
  else if (documents.length === 0) terminal.print('Nothing was kept for any tenant yet.')
}

function showOnce(cli: Cli, target: Target | WorkerTarget, view: StatusView, flags: StatusFlags): void {
  const { terminal } = cli
  if (!terminal.json) return terminal.print(...formatStatus(cli, view, flags))
  terminal.printDocument({ ...targetDocument(target), ...statusDocument(view, flags) })
}

function formatStatus(cli: Cli, { now, syncs: standings, webhooks, headSequence: position, pauses, drift }: StatusView, { all = false, reveal = false, watch }: StatusFlags): string[] {
  if (standings.length === 0) return [all ? 'Nothing has run in this store.' : 'This worker declares no syncs.']
  return [
    ...formatSyncTable(cli, standings, now, { all, reveal, columns: watch !== undefined && cli.terminal.isInteractive ? WATCH_COLUMNS : STATUS_COLUMNS }),
    ...standings.flatMap((standing) => formatRemarks(cli, standing, now)),
    ...pauses.map((pause) => formatPause(cli, pause, now)),
    ...formatDrift(cli, drift),
    ...webhooks.map((webhook) => formatWebhook(cli, webhook, position)),
  ]
}

/** The webhooks are of the tenant, not of a worker. */
interface StatusView {
  readonly now: number
  readonly syncs: readonly SyncStatusDetails[]
  readonly webhooks: readonly Webhook[]
  readonly headSequence: number
  /** The pauses that sources have asked for. */
  readonly pauses: readonly (Pause & { readonly worker: string })[]
  /** What the columns of the tables do not show. */
  readonly drift: readonly SchemaDrift[]
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
  const { now, standings } = await readSyncStatus(store, await listSyncs(store, target))
  const pauses = await readPauses(store, [...new Set(standings.map(({ worker }) => worker))])
  return { now, syncs: standings, webhooks: (await store?.webhooks()) ?? [], headSequence: (await store?.headSequence()) ?? 0, pauses, drift: (await store?.schemaDrift()) ?? [] }
}

async function readPauses(store: Store | null, workers: readonly string[]): Promise<StatusView['pauses']> {
  const found: Array<StatusView['pauses'][number]> = []
  for (const worker of workers) {
    const { pauses = [] } = await store?.pauses({ worker, at: systemClock.now() }) ?? {}
    found.push(...pauses.map((pause) => ({ worker, ...pause })))
  }
  return found
}

/** Those of the worker in the order it declares them, then those it no longer does. */
async function listSyncs(store: Store | null, target: Target | WorkerTarget): Promise<SyncStatusRequest[]> {
  const kept = store === null ? [] : await store.syncs()
  if (!('worker' in target)) return kept.map((ref) => ({ ref, declared: null }))
  const declared = target.worker.manifest.syncs.map((sync) => ({ ref: { worker: target.name, sync: sync.name }, declared: sync }))
  const names = new Set(declared.map(({ ref }) => ref.sync))
  const gone = kept.filter(({ worker, sync }) => worker === target.name && !names.has(sync)).map((ref) => ({ ref, declared: null }))
  return [...declared, ...gone]
}

// ── for programs ─────────────────────────────────────────────────────────────────────────────────────────────────────

function statusDocument({ now, syncs: standings, webhooks, headSequence: position, pauses, drift }: StatusView, { reveal = false }: StatusFlags): object {
  return { at: isoTime(now), syncs: standings.map((standing) => syncDocument(standing, reveal)), webhooks: webhooks.map((webhook) => toWebhookDocument(webhook, position)),
    pauses: pauses.map(({ worker, pacer, origin, until }) => ({ worker, pacer: pacer || null, origin: origin || null, until: isoTime(until) })),
    ...(drift.length > 0 && { schemaDrift: drift.map(({ at, ...rest }) => ({ ...rest, at: isoTime(at) })) }),
  }
}

function syncDocument(standing: SyncStatusDetails, reveal: boolean): object {
  const { worker, sync, health, declared, checkpoint, lastCycle: last, lagMs, due, leaseHolder: held, backfillNeeded, quarantined, drift } = standing
  return {
    worker, sync, health,
    declared: declared !== null,
    mode: declared?.mode ?? last?.mode ?? null,
    schedule: declared === null ? null : declared.schedule,
    databases: declared?.databases ?? [],
    tidemark: redactTidemark(checkpoint.tidemark, reveal),
    lagMs,
    version: checkpoint.version,
    lastCycle: last === null ? null : {
      cycle: last.cycle, trigger: last.trigger, startedAt: isoTime(last.startedAt), endedAt: isoTime(last.endedAt), stopReason: last.stopReason, endReason: last.endReason,
      pages: last.pages, counts: last.counts, retries: last.retries, waitedMs: last.waitedMs,
    },
    unfinished: checkpoint.inflight === null ? null : { cycle: checkpoint.inflight.cycle, pages: checkpoint.inflight.page, startedAt: isoTime(checkpoint.inflight.startedAt) },
    lastSuccessAt: isoTime(checkpoint.lastSuccessAt),
    backfillNeeded: backfillNeeded === null ? null : { since: isoTime(backfillNeeded.since), reason: backfillNeeded.reason },
    next: due === null ? null : due.kind === 'at' ? { at: isoTime(due.at), why: due.why } : { at: null, why: due.why },
    triggeredAt: isoTime(checkpoint.triggeredAt),
    failures: checkpoint.failures,
    retryAt: isoTime(checkpoint.retryAt),
    lastError: checkpoint.lastError === null ? null : {
      code: checkpoint.lastError.code, message: checkpoint.lastError.message, advice: adviceFor(checkpoint.lastError.code, sync), at: isoTime(checkpoint.lastError.at),
    },
    heldBy: held?.holder ?? null,
    heldUntil: isoTime(held?.until ?? null),
    runner: held === null ? null : { host: held.location?.host ?? null, pid: held.location?.pid ?? null, since: isoTime(held.since), leaseLeftMs: held.remainingMs, gone: held.isGone },
    quarantined,
    ...(drift !== null && { drift }),
  }
}

// ── for people ───────────────────────────────────────────────────────────────────────────────────────────────────────

function formatSyncTable({ terminal: { colors } }: Cli, standings: readonly SyncStatusDetails[], now: number, options: { all: boolean; reveal: boolean; columns: readonly StatusColumn[] }): string[] {
  const paint: Record<Health, (text: string) => string> = {
    HEALTHY: colors.green, INITIALIZING: colors.cyan, WARNING: colors.yellow, ERROR: colors.red, PAUSED: colors.dim,
  }
  const cells: Record<StatusColumn, (standing: SyncStatusDetails) => string> = {
    SYNC: ({ worker, sync }) => (options.all ? `${worker}/${sync}` : sync),
    HEALTH: ({ health }) => paint[health](health),
    MODE: ({ declared, lastCycle: last }) => declared?.mode ?? last?.mode ?? '-',
    SCHEDULE: ({ declared }) => (declared === null ? (options.all ? '-' : 'not declared') : describeSchedule(declared.schedule)),
    TIDEMARK: ({ checkpoint }) => {
      const told = redactTidemark(checkpoint.tidemark, options.reveal) ?? '-'
      return options.columns === WATCH_COLUMNS ? shortenTidemark(told, now) : told
    },
    LAG: ({ lagMs }) => (lagMs === null ? '-' : formatDuration(lagMs)),
    VERSION: ({ checkpoint }) => String(checkpoint.version),
    'LAST CYCLE': (standing) => formatLastCycle(standing, now),
    NEXT: (standing) => formatNextRun(standing, now),
  }
  return formatTable(options.columns.map((title) => colors.bold(title)), standings.map((standing) => options.columns.map((title) => cells[title](standing))))
}

type StatusColumn = (typeof STATUS_COLUMNS)[number]

const STATUS_COLUMNS = ['SYNC', 'HEALTH', 'MODE', 'SCHEDULE', 'TIDEMARK', 'LAG', 'VERSION', 'LAST CYCLE', 'NEXT'] as const
/** Where lines are cut to the screen: what moves, and that first. */
const WATCH_COLUMNS: readonly StatusColumn[] = ['SYNC', 'HEALTH', 'TIDEMARK', 'LAG', 'NEXT', 'LAST CYCLE']

function formatLastCycle({ lastCycle: last, leaseHolder: held }: SyncStatusDetails, now: number): string {
  if (last === null) return 'never ran'
  if (last.endedAt !== null) return `${last.stopReason ?? 'ended'}${last.endReason === null ? '' : ` (${last.endReason})`} ${formatAgo(last.endedAt, now)}: ${describeCounts(last.counts)}`
  if (held?.isGone !== false) return `broke off, begun ${formatAgo(last.startedAt, now)}: ${describeCounts(last.counts)}`
  const perSecond = Math.round(totalRows(last.counts) / Math.max(1, (now - last.startedAt) / 1_000))
  return `runs for ${formatDuration(now - last.startedAt)}: ${formatNumber(last.pages)} ${last.pages === 1 ? 'page' : 'pages'}, ${describeCounts(last.counts)}, ${formatNumber(perSecond)} rows/s`
}

function formatNextRun({ due, leaseHolder: held }: SyncStatusDetails, now: number): string {
  if (held?.isGone === false) return 'now'
  if (due === null) return '-'
  if (due.kind === 'never') return due.why === 'manual' ? 'when asked' : due.why
  const when = due.at <= now ? 'due' : formatAgo(due.at, now)
  return due.why === 'schedule' ? when : `${when} (${due.why})`
}

function formatRemarks({ terminal: { colors }, targetFlags }: Cli, standing: SyncStatusDetails, now: number): string[] {
  const { sync, declared, checkpoint: { lastError, failures, inflight }, leaseHolder: held, backfillNeeded, quarantined, drift } = standing
  const lines: string[] = []
  if (failures > 0 && lastError !== null) {
    lines.push(`${colors.red('✗')} ${sync}: failed ${failures === 1 ? 'once' : `${failures} times in a row`}, last ${formatAgo(lastError.at, now)}: ${colors.bold(lastError.code)} ${toPrintable(lastError.message)}`)
    lines.push(`  ${addTargetFlags(adviceFor(lastError.code, sync), targetFlags)}`)
  }
  const isSaid = failures > 0 && lastError?.code === 'HISTORY_LOST' && declared?.pair === null
  if (backfillNeeded !== null && declared?.pair !== 'delta' && !isSaid) {
    lines.push(`${colors.yellow('•')} ${sync}: everything has to be read again, since ${formatAgo(backfillNeeded.since, now)}: ${toPrintable(backfillNeeded.reason)}`)
    lines.push(declared?.pair === null
      ? `  ${addTargetFlags(adviceFor('HISTORY_LOST', sync), targetFlags)}`
      : `  The scheduler does it by itself, and so does the next \`tidemark run\`. Until then changes may be missing.`)
  }
  if (held !== null) {
    lines.push(held.isGone
      ? `${colors.yellow('•')} ${sync}: ${describeHolder(held)} held it and is gone; the next run takes over.`
      : `${colors.cyan('▸')} ${sync}: run by ${describeHolder(held)}${held.since === null ? '' : `, taken ${formatAgo(held.since, now)}`}, lease for another ${formatDuration(held.remainingMs)}`)
  } else if (inflight !== null) lines.push(`${colors.yellow('•')} ${sync}: cycle ${inflight.cycle} is unfinished after ${formatNumber(inflight.page)} pages; the next run continues it.`)
  if (drift !== null) lines.push(`${colors.yellow('•')} ${sync}: not as before: ${toPrintable(drift)}.`)
  if (quarantined > 0) lines.push(`${colors.yellow('•')} ${sync}: ${quarantined >= QUARANTINED_COUNT_MAX ? `at least ${formatNumber(QUARANTINED_COUNT_MAX)}` : formatNumber(quarantined)} ${quarantined === 1 ? 'record is' : 'records are'} in quarantine.`)
  return lines
}

function formatPause({ terminal: { colors } }: Cli, { pacer, origin, until }: Pause, now: number): string {
  const account = [origin || 'the source', ...(pacer === '' ? [] : [`pacer ${pacer}`])].join(', ')
  return `${colors.yellow('•')} ${toPrintable(account)}: asked for a pause until ${isoTime(until)}, ${formatAgo(until, now)}. Nothing is sent before.`
}

const DRIFT_LINES_MAX = 10

function formatDrift({ terminal: { colors } }: Cli, drift: readonly SchemaDrift[]): string[] {
  const lines = drift.slice(0, DRIFT_LINES_MAX).map((item) => `${colors.yellow('•')} ${toPrintable(describeDrift(item))}. \`tidemark schema plan ${toPrintable(item.database)}\` makes room.`)
  return drift.length > DRIFT_LINES_MAX ? [...lines, `${colors.yellow('•')} and ${formatNumber(drift.length - DRIFT_LINES_MAX)} more members.`] : lines
}

function formatWebhook({ terminal: { colors } }: Cli, webhook: Webhook, position: number): string {
  const { id, sequence: read, waiting, dead, disabledReason: disabled } = webhook
  const marks = { enabled: colors.green('✓'), failing: colors.yellow('•'), disabled: colors.red('✗') }
  const state = computeWebhookState(webhook)
  const counts = [[position - read, 'behind'], [waiting, 'waiting'], [dead, 'given up']] as const
  return `${marks[state]} webhook ${id}: ${disabled === null ? state : `disabled: ${toPrintable(disabled)}`}${counts.filter(([number]) => number > 0).map(([number, what]) => `, ${formatNumber(number)} ${what}`).join('')}`
}

function describeHolder({ holder: by, location: at }: LeaseHolder): string {
  return at === null ? toPrintable(by) : `process ${at.pid} on ${toPrintable(at.host)} (${toPrintable(by)})`
}
