import { Command, Option } from 'commander'
import type { Pause, SchemaDrift, Store, Webhook } from '../contract/index.ts'
import { systemClock } from '../platform/clock.ts'
import type { Health } from '../runner/health.ts'
import { driftWords } from '../values/drift-words.ts'
import { isKept } from '../runner/watch-tenants.ts'
import { stateOf, webhookDocument } from '../webhooks/manage.ts'
import { countArgument } from './arguments.ts'
import type { Act, Cli } from './cli.ts'
import { describeCounts, grouped, rowsOf } from './counts.ts'
import { ago, duration } from './duration.ts'
import { isoTime } from './json-document.ts'
import { openForEveryTenant, openForReading } from './open-for-reading.ts'
import { printable } from './printable.ts'
import { showTidemark } from '../redaction/redact-state.ts'
import { adviceFor } from './report-error.ts'
import { describeSchedule, QUARANTINED_MAX, standingsOf, type Asked, type Held, type Standing } from './standing.ts'
import { shortTidemark } from './short-tidemark.ts'
import { table } from './table.ts'
import { withTargetFlags } from './target-flags.ts'
import { announce, storeTarget, targetDocument, withStoreFlags, workerTarget, type Target, type TargetFlags, type WorkerTarget } from './target.ts'

interface StatusFlags extends TargetFlags {
  readonly watch?: boolean | number
  readonly all?: boolean
  readonly allTenants?: boolean
  readonly reveal?: boolean
}

const WATCH_SECONDS = 2
/** A thousand tenants one after the other would take a minute on PostgreSQL. */
const TENANTS_AT_ONCE = 8

export function statusVerb(): Command {
  return withStoreFlags(new Command('status'))
    .summary('where every sync stands')
    .description('Shows where every sync of the worker stands: its health, its tidemark, how old the copy may be, its last cycle and its next.')
    .addOption(new Option('--watch [seconds]', 'look again every so often, until Ctrl-C').argParser(countArgument).preset(WATCH_SECONDS))
    .option('--all', 'every sync in the store, of all workers; needs no worker file')
    .addOption(new Option('--all-tenants', 'of every tenant of the store, one after the other').conflicts('watch'))
    .option('--reveal', 'show cursors that stand in for a time as they are')
}

export const status: Act<[StatusFlags]> = async (cli, flags) => {
  const target = flags.all === true ? storeTarget(cli, flags) : await workerTarget(cli, flags)
  if (flags.allTenants === true) return await showTenants(cli, target, flags)
  if (flags.watch === undefined) {
    announce(cli, target)
    showOnce(cli, target, await lookAt(target), flags)
    return
  }
  const seconds = typeof flags.watch === 'number' ? flags.watch : WATCH_SECONDS
  const stopping = cli.listenForStop('Nothing is stopped but the looking.')
  announce(cli, target)
  cli.terminal.fill()
  try {
    while (!stopping.aborted && !cli.terminal.closed.aborted) {
      const view = await lookAt(target)
      if (cli.terminal.isLive) cli.terminal.draw(linesOf(cli, view, flags))
      else showOnce(cli, target, view, flags)
      await systemClock.sleep(seconds * 1_000, stopping).catch(() => {})
    }
  } finally {
    cli.terminal.settle()
  }
}

async function showTenants(cli: Cli, target: Target | WorkerTarget, flags: StatusFlags): Promise<void> {
  const { terminal } = cli
  const documents: object[] = []
  const store = await openForEveryTenant(target)
  try {
    const tenants = (await store?.tenants()) ?? []
    for (let at = 0; at < tenants.length; at += TENANTS_AT_ONCE) {
      const views = await Promise.all(tenants.slice(at, at + TENANTS_AT_ONCE).map(async (tenant) => {
        const own = store!.forTenant(tenant)
        return (await isKept(own)) ? { tenant, view: await lookInto(own, { ...target, tenant }) } : null
      }))
      for (const { tenant, view } of views.filter((found) => found !== null)) {
        documents.push({ tenant, ...viewDocument(view, flags) })
        if (!terminal.json) terminal.print(...(documents.length > 1 ? [''] : []), terminal.colors.bold(`tenant ${printable(tenant)}`), ...linesOf(cli, view, flags))
      }
    }
  } finally {
    await store?.close()
  }
  if (terminal.json) terminal.document({ ...targetDocument(target), tenants: documents })
  else if (documents.length === 0) terminal.print('Nothing was kept for any tenant yet.')
}

function showOnce(cli: Cli, target: Target | WorkerTarget, view: View, flags: StatusFlags): void {
  const { terminal } = cli
  if (!terminal.json) return terminal.print(...linesOf(cli, view, flags))
  terminal.document({ ...targetDocument(target), ...viewDocument(view, flags) })
}

function linesOf(cli: Cli, { now, standings, webhooks, position, pauses, drift }: View, { all = false, reveal = false, watch }: StatusFlags): string[] {
  if (standings.length === 0) return [all ? 'Nothing has run in this store.' : 'This worker declares no syncs.']
  return [
    ...standingTable(cli, standings, now, { all, reveal, columns: watch !== undefined && cli.terminal.isLive ? WATCHED : COLUMNS }),
    ...standings.flatMap((standing) => remarksOn(cli, standing, now)),
    ...pauses.map((pause) => pauseLine(cli, pause, now)),
    ...driftLines(cli, drift),
    ...webhooks.map((webhook) => webhookLine(cli, webhook, position)),
  ]
}

/** The webhooks are of the tenant, not of a worker. */
interface View {
  readonly now: number
  readonly standings: readonly Standing[]
  readonly webhooks: readonly Webhook[]
  readonly position: number
  /** The pauses that sources have asked for. */
  readonly pauses: readonly (Pause & { readonly worker: string })[]
  /** What the columns of the tables do not show. */
  readonly drift: readonly SchemaDrift[]
}

async function lookAt(target: Target | WorkerTarget): Promise<View> {
  const store = await openForReading(target)
  try {
    return await lookInto(store, target)
  } finally {
    await store?.close()
  }
}

async function lookInto(store: Store | null, target: Target | WorkerTarget): Promise<View> {
  const { now, standings } = await standingsOf(store, await syncsOf(store, target))
  const pauses = await pausesOf(store, [...new Set(standings.map(({ worker }) => worker))])
  return { now, standings, webhooks: (await store?.webhooks()) ?? [], position: (await store?.position()) ?? 0, pauses, drift: (await store?.schemaDrift()) ?? [] }
}

async function pausesOf(store: Store | null, workers: readonly string[]): Promise<View['pauses']> {
  const found: Array<View['pauses'][number]> = []
  for (const worker of workers) {
    const { pauses = [] } = await store?.pauses({ worker, at: systemClock.now() }) ?? {}
    found.push(...pauses.map((pause) => ({ worker, ...pause })))
  }
  return found
}

/** Those of the worker in the order it declares them, then those it no longer does. */
async function syncsOf(store: Store | null, target: Target | WorkerTarget): Promise<Asked[]> {
  const kept = store === null ? [] : await store.syncs()
  if (!('worker' in target)) return kept.map((ref) => ({ ref, declared: null }))
  const declared = target.worker.manifest.syncs.map((sync) => ({ ref: { worker: target.name, sync: sync.name }, declared: sync }))
  const names = new Set(declared.map(({ ref }) => ref.sync))
  const gone = kept.filter(({ worker, sync }) => worker === target.name && !names.has(sync)).map((ref) => ({ ref, declared: null }))
  return [...declared, ...gone]
}

// ── for programs ─────────────────────────────────────────────────────────────────────────────────────────────────────

function viewDocument({ now, standings, webhooks, position, pauses, drift }: View, { reveal = false }: StatusFlags): object {
  return { at: isoTime(now), syncs: standings.map((standing) => standingDocument(standing, reveal)), webhooks: webhooks.map((webhook) => webhookDocument(webhook, position)),
    pauses: pauses.map(({ worker, pacer, origin, until }) => ({ worker, pacer: pacer || null, origin: origin || null, until: isoTime(until) })),
    ...(drift.length > 0 && { schemaDrift: drift.map(({ at, ...rest }) => ({ ...rest, at: isoTime(at) })) }),
  }
}

function standingDocument(standing: Standing, reveal: boolean): object {
  const { worker, sync, health, declared, checkpoint, last, lagMs, due, held, backfillNeeded, quarantined, drift } = standing
  return {
    worker, sync, health,
    declared: declared !== null,
    mode: declared?.mode ?? last?.mode ?? null,
    schedule: declared === null ? null : declared.schedule,
    databases: declared?.databases ?? [],
    tidemark: showTidemark(checkpoint.tidemark, reveal),
    lagMs,
    version: checkpoint.version,
    lastCycle: last === null ? null : {
      cycle: last.cycle, trigger: last.trigger, startedAt: isoTime(last.startedAt), endedAt: isoTime(last.endedAt), stopReason: last.stopReason, stopWord: last.stopWord,
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
    heldBy: held?.by ?? null,
    heldUntil: isoTime(held?.until ?? null),
    runner: held === null ? null : { host: held.at?.host ?? null, pid: held.at?.pid ?? null, since: isoTime(held.since), leaseLeftMs: held.leftMs, gone: held.gone },
    quarantined,
    ...(drift !== null && { drift }),
  }
}

// ── for people ───────────────────────────────────────────────────────────────────────────────────────────────────────

function standingTable({ terminal: { colors } }: Cli, standings: readonly Standing[], now: number, options: { all: boolean; reveal: boolean; columns: readonly Column[] }): string[] {
  const paint: Record<Health, (text: string) => string> = {
    HEALTHY: colors.green, INITIALIZING: colors.cyan, WARNING: colors.yellow, ERROR: colors.red, PAUSED: colors.dim,
  }
  const cells: Record<Column, (standing: Standing) => string> = {
    SYNC: ({ worker, sync }) => (options.all ? `${worker}/${sync}` : sync),
    HEALTH: ({ health }) => paint[health](health),
    MODE: ({ declared, last }) => declared?.mode ?? last?.mode ?? '-',
    SCHEDULE: ({ declared }) => (declared === null ? (options.all ? '-' : 'not declared') : describeSchedule(declared.schedule)),
    TIDEMARK: ({ checkpoint }) => {
      const told = showTidemark(checkpoint.tidemark, options.reveal) ?? '-'
      return options.columns === WATCHED ? shortTidemark(told, now) : told
    },
    LAG: ({ lagMs }) => (lagMs === null ? '-' : duration(lagMs)),
    VERSION: ({ checkpoint }) => String(checkpoint.version),
    'LAST CYCLE': (standing) => lastCell(standing, now),
    NEXT: (standing) => nextCell(standing, now),
  }
  return table(options.columns.map((title) => colors.bold(title)), standings.map((standing) => options.columns.map((title) => cells[title](standing))))
}

type Column = (typeof COLUMNS)[number]

const COLUMNS = ['SYNC', 'HEALTH', 'MODE', 'SCHEDULE', 'TIDEMARK', 'LAG', 'VERSION', 'LAST CYCLE', 'NEXT'] as const
/** Where lines are cut to the screen: what moves, and that first. */
const WATCHED: readonly Column[] = ['SYNC', 'HEALTH', 'TIDEMARK', 'LAG', 'NEXT', 'LAST CYCLE']

function lastCell({ last, held }: Standing, now: number): string {
  if (last === null) return 'never ran'
  if (last.endedAt !== null) return `${last.stopReason ?? 'ended'}${last.stopWord === null ? '' : ` (${last.stopWord})`} ${ago(last.endedAt, now)}: ${describeCounts(last.counts)}`
  if (held?.gone !== false) return `broke off, begun ${ago(last.startedAt, now)}: ${describeCounts(last.counts)}`
  const perSecond = Math.round(rowsOf(last.counts) / Math.max(1, (now - last.startedAt) / 1_000))
  return `runs for ${duration(now - last.startedAt)}: ${grouped(last.pages)} ${last.pages === 1 ? 'page' : 'pages'}, ${describeCounts(last.counts)}, ${grouped(perSecond)} rows/s`
}

function nextCell({ due, held }: Standing, now: number): string {
  if (held?.gone === false) return 'now'
  if (due === null) return '-'
  if (due.kind === 'never') return due.why === 'manual' ? 'when asked' : due.why
  const when = due.at <= now ? 'due' : ago(due.at, now)
  return due.why === 'schedule' ? when : `${when} (${due.why})`
}

function remarksOn({ terminal: { colors }, targetFlags }: Cli, standing: Standing, now: number): string[] {
  const { sync, declared, checkpoint: { lastError, failures, inflight }, held, backfillNeeded, quarantined, drift } = standing
  const lines: string[] = []
  if (failures > 0 && lastError !== null) {
    lines.push(`${colors.red('✗')} ${sync}: failed ${failures === 1 ? 'once' : `${failures} times in a row`}, last ${ago(lastError.at, now)}: ${colors.bold(lastError.code)} ${printable(lastError.message)}`)
    lines.push(`  ${withTargetFlags(adviceFor(lastError.code, sync), targetFlags)}`)
  }
  const isSaid = failures > 0 && lastError?.code === 'HISTORY_LOST' && declared?.pair === null
  if (backfillNeeded !== null && declared?.pair !== 'delta' && !isSaid) {
    lines.push(`${colors.yellow('•')} ${sync}: everything has to be read again, since ${ago(backfillNeeded.since, now)}: ${printable(backfillNeeded.reason)}`)
    lines.push(declared?.pair === null
      ? `  ${withTargetFlags(adviceFor('HISTORY_LOST', sync), targetFlags)}`
      : `  The scheduler does it by itself, and so does the next \`tidemark run\`. Until then changes may be missing.`)
  }
  if (held !== null) {
    lines.push(held.gone
      ? `${colors.yellow('•')} ${sync}: ${holderOf(held)} held it and is gone; the next run takes over.`
      : `${colors.cyan('▸')} ${sync}: run by ${holderOf(held)}${held.since === null ? '' : `, taken ${ago(held.since, now)}`}, lease for another ${duration(held.leftMs)}`)
  } else if (inflight !== null) lines.push(`${colors.yellow('•')} ${sync}: cycle ${inflight.cycle} is unfinished after ${grouped(inflight.page)} pages; the next run continues it.`)
  if (drift !== null) lines.push(`${colors.yellow('•')} ${sync}: not as before: ${printable(drift)}.`)
  if (quarantined > 0) lines.push(`${colors.yellow('•')} ${sync}: ${quarantined >= QUARANTINED_MAX ? `at least ${grouped(QUARANTINED_MAX)}` : grouped(quarantined)} ${quarantined === 1 ? 'record is' : 'records are'} in quarantine.`)
  return lines
}

function pauseLine({ terminal: { colors } }: Cli, { pacer, origin, until }: Pause, now: number): string {
  const account = [origin || 'the source', ...(pacer === '' ? [] : [`pacer ${pacer}`])].join(', ')
  return `${colors.yellow('•')} ${printable(account)}: asked for a pause until ${isoTime(until)}, ${ago(until, now)}. Nothing is sent before.`
}

const DRIFT_LINES_MAX = 10

function driftLines({ terminal: { colors } }: Cli, drift: readonly SchemaDrift[]): string[] {
  const lines = drift.slice(0, DRIFT_LINES_MAX).map((item) => `${colors.yellow('•')} ${printable(driftWords(item))}. \`tidemark schema plan ${printable(item.database)}\` makes room.`)
  return drift.length > DRIFT_LINES_MAX ? [...lines, `${colors.yellow('•')} and ${grouped(drift.length - DRIFT_LINES_MAX)} more members.`] : lines
}

function webhookLine({ terminal: { colors } }: Cli, webhook: Webhook, position: number): string {
  const { id, position: read, waiting, dead, disabled } = webhook
  const marks = { enabled: colors.green('✓'), failing: colors.yellow('•'), disabled: colors.red('✗') }
  const state = stateOf(webhook)
  const counts = [[position - read, 'behind'], [waiting, 'waiting'], [dead, 'given up']] as const
  return `${marks[state]} webhook ${id}: ${disabled === null ? state : `disabled: ${printable(disabled)}`}${counts.filter(([number]) => number > 0).map(([number, what]) => `, ${grouped(number)} ${what}`).join('')}`
}

function holderOf({ by, at }: Held): string {
  return at === null ? printable(by) : `process ${at.pid} on ${printable(at.host)} (${printable(by)})`
}
