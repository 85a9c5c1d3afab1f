import type { CycleResult, CycleProgress } from '../../engine/cycle-options.ts'
import { systemClock } from '../../platform/clock.ts'
import type { Cli } from '../cli.ts'
import { changedRows, describeCounts, formatNumber, totalRows } from './counts.ts'
import { formatDuration } from './duration.ts'
import { isoTime } from './json-document.ts'
import { toPrintable } from './printable.ts'
import { redactTidemark } from '../../redaction/redact-state.ts'
import { adviceFor } from './report-error.ts'
import { shortenTidemark } from './shorten-tidemark.ts'
import { truncateToWidth, padToWidth } from './table.ts'
import { addTargetFlags } from './target-flags.ts'

/** Shows cycles while they run. */
export interface CycleDisplay {
  showProgress(sync: string, progress: CycleProgress): void
  showResult(result: CycleResult): void
  close(): void
}

export interface DisplayOptions {
  readonly reveal: boolean
  /** Cycles follow one another until somebody stops them. */
  readonly continuous: boolean
}

export function createDisplay(cli: Cli, syncs: readonly string[], options: DisplayOptions): CycleDisplay {
  const { terminal } = cli
  if (terminal.json) return createJsonDisplay(cli, options.reveal)
  return terminal.isInteractive ? createLiveDisplay(cli, syncs, options) : createPlainDisplay(cli, options)
}

/** What a cycle came to, as a document. */
export function resultDocument(result: CycleResult, reveal: boolean): object {
  const { worker: _, startedAt, endedAt, retryAt, tidemark, drift, ...rest } = result
  return {
    ...renameHeadSequence(rest), ...(drift.length > 0 && { drift }), tidemark: redactTidemark(tidemark, reveal), startedAt: isoTime(startedAt), endedAt: isoTime(endedAt), retryAt: isoTime(retryAt),
    error: result.error === null ? null : { ...result.error, advice: adviceFor(result.error.code, result.sync) },
  }
}

/** In documents the newest sequence of the store is called `position`. The order of the members stays. */
export function renameHeadSequence(facts: object): object {
  return Object.fromEntries(Object.entries(facts).map(([name, value]) => [name === 'headSequence' ? 'position' : name, value]))
}

/** What a cycle came to, in words; the second line is what to do about it. */
export function formatResult({ terminal: { colors }, targetFlags }: Cli, result: CycleResult, reveal: boolean): string[] {
  const seconds = Math.max(0.001, (result.endedAt - result.startedAt) / 1_000)
  const rows = totalRows(result.counts)
  const facts = [
    result.pages === 0 ? null : `${formatNumber(result.pages)} ${result.pages === 1 ? 'page' : 'pages'}`,
    result.pages === 0 ? null : describeCounts(result.counts),
    result.pages === 0 ? null : `${formatDuration(seconds * 1_000)}${rows > 100 ? `, ${formatNumber(Math.round(rows / seconds))} rows/s` : ''}`,
    result.tidemark === null ? null : `tidemark ${redactTidemark(result.tidemark, reveal)}`,
    result.waitedMs > 0 ? `waited ${formatDuration(result.waitedMs)}` : null,
    result.endReason,
    result.resumed ? 'took up the unfinished cycle' : null,
  ].filter((fact) => fact !== null).join(' · ')
  const { error, stopReason, sync } = result
  if (error !== null) {
    const head = `${colors.red('✗')} ${sync}  ${colors.bold(error.code)}  ${toPrintable(error.message)}`
    return [facts === '' ? head : `${head}  ${colors.dim(facts)}`, `  ${addTargetFlags(adviceFor(error.code, sync), targetFlags)}`]
  }
  const drift = result.drift.length === 0 ? [] : [`  ${colors.yellow('•')} not as before: ${toPrintable(result.drift.join('; '))}`]
  if (stopReason === 'complete') return [`${colors.green('✓')} ${sync}  ${facts}`, ...drift]
  return [`${colors.yellow('•')} ${sync}  ${STOP_REASON_TEXT[stopReason] ?? stopReason}  ${colors.dim(facts)}`.trimEnd()]
}

const STOP_REASON_TEXT: Partial<Record<CycleResult['stopReason'], string>> = {
  cancelled: 'stopped as asked; the next run continues here',
  max_pages: 'used up its pages; the next run continues here',
  timeout: 'used up its time; the next run continues here',
  paused: 'was paused; `tidemark resume` lets it go on',
}

/** Rows that were read, and how many of them changed something where that is not all. */
function formatRows(rows: number, changed: number): string {
  return rows === changed ? `${formatNumber(rows)} rows` : `${formatNumber(rows)} rows, ${formatNumber(changed)} changed`
}

// ── for programs ─────────────────────────────────────────────────────────────────────────────────────────────────────

function createJsonDisplay({ terminal }: Cli, reveal: boolean): CycleDisplay {
  return {
    showProgress(sync, progress) {
      const { kind, ...facts } = progress
      terminal.printDocument({ event: kind, sync, ...renameHeadSequence(facts), ...('tidemark' in facts ? { tidemark: redactTidemark(facts.tidemark, reveal) } : {}) })
    },
    showResult() {},
    close() {},
  }
}

// ── for a file or a pipe ─────────────────────────────────────────────────────────────────────────────────────────────

const PLAIN_EVERY_MS = 2_000

function createPlainDisplay(cli: Cli, { reveal, continuous: lasting }: DisplayOptions): CycleDisplay {
  const { terminal } = cli
  const toldAt = new Map<string, number>()
  return {
    showProgress(sync, progress) {
      const now = performance.now()
      if (progress.kind === 'landed') {
        if (now - (toldAt.get(sync) ?? 0) < PLAIN_EVERY_MS) return
        terminal.print(`  ${sync}  page ${formatNumber(progress.page)}, ${formatRows(totalRows(progress.counts), changedRows(progress.counts))}${progress.left === undefined ? '' : `, ${formatNumber(progress.left)} left`}`)
      } else if (progress.kind === 'waiting' || !lasting) terminal.print(`  ${sync}  ${describeProgress(progress)}`)
      toldAt.set(sync, now)
    },
    // What runs for ever is told of where something came of it.
    showResult: (result) => (lasting && result.error === null && changedRows(result.counts) === 0 ? undefined : terminal.print(...formatResult(cli, result, reveal))),
    close() {},
  }
}

function describeProgress(progress: Exclude<CycleProgress, { kind: 'landed' }>): string {
  if (progress.kind === 'waiting') return `waits ${formatDuration(progress.ms)} (${progress.code})`
  return progress.resumed ? `cycle ${progress.cycle} goes on after page ${progress.page}` : `cycle ${progress.cycle} begins`
}

// ── for a person ─────────────────────────────────────────────────────────────────────────────────────────────────────

const DRAW_EVERY_MS = 100
const NAME_MIN = 12

interface SyncLine {
  /** Of the newest cycle, like everything here. */
  startedAt: number
  endedAt: number
  isRunning: boolean
  pages: number
  rows: number
  rowsLeft: number | undefined
  tidemark: string | null
  waitingUntil: number
  waitingFor: string
  changed: number
}

/** One line for each sync, redrawn in place. It ends as a line that stays; where cycles follow one another, it goes on with them. */
function createLiveDisplay(cli: Cli, syncs: readonly string[], { reveal, continuous: lasting }: DisplayOptions): CycleDisplay {
  const { terminal } = cli
  const { colors } = terminal
  const lines = new Map<string, SyncLine>()
  const widest = Math.max(0, ...syncs.map((sync) => sync.length))
  // A name may take a fifth of the line, or as much as tells most of them apart: what moves is beside it.
  const room = (): number => Math.min(widest, Math.max(NAME_MIN, Math.floor(terminal.columns / 5)))
  const lineOf = ([sync, line]: [string, SyncLine], now: number): string => {
    const text = `${padToWidth(truncateToWidth(sync, room()), room())}  ${formatSyncLine(line, now)}`
    if (line.waitingUntil > now) return colors.yellow(`▸ ${text}`)
    return line.isRunning ? `${colors.cyan('▸')} ${text}` : colors.dim(`· ${text}`)
  }
  const draw = (): void => {
    const now = performance.now()
    // Those at work first, when there is no room for all of them.
    const order = lines.size < terminal.rows ? [...lines] : [...lines].toSorted(([, a], [, b]) => Number(b.isRunning) - Number(a.isRunning))
    terminal.draw(order.map((entry) => lineOf(entry, now)))
  }
  const timer = setInterval(draw, DRAW_EVERY_MS)
  const begin = (sync: string): SyncLine => {
    const line = lines.get(sync) ?? { startedAt: 0, endedAt: 0, isRunning: false, pages: 0, rows: 0, changed: 0, rowsLeft: undefined, tidemark: null, waitingUntil: 0, waitingFor: '' }
    if (!line.isRunning) Object.assign(line, { startedAt: performance.now(), isRunning: true, pages: 0, rows: 0, changed: 0, left: undefined, waitingUntil: 0 })
    lines.set(sync, line)
    return line
  }
  return {
    showProgress(sync, progress) {
      const line = begin(sync)
      if (progress.kind === 'waiting') {
        line.waitingUntil = performance.now() + progress.ms
        line.waitingFor = progress.code
      } else if (progress.kind === 'landed') {
        line.pages = progress.page
        line.rows = totalRows(progress.counts)
        line.changed = changedRows(progress.counts)
        line.rowsLeft = progress.left
        const tidemark = redactTidemark(progress.tidemark, reveal)
        line.tidemark = tidemark === null ? null : shortenTidemark(tidemark, systemClock.now())
      }
    },
    showResult(result) {
      const line = lines.get(result.sync)
      if (lasting && line !== undefined) {
        line.endedAt = performance.now()
        line.isRunning = false
      } else lines.delete(result.sync)
      draw()
      if (!lasting || result.error !== null) terminal.print(...formatResult(cli, result, reveal))
    },
    close() {
      clearInterval(timer)
      terminal.draw([])
    },
  }
}

/**
 * `3 pages · 300 rows, 12 changed · 120/s · 12:00:00Z · 2m to go`, or with `waits 4s (RATE_LIMITED)` in place of the rate:
 * the most important first, because the rest may be cut off.
 */
function formatSyncLine({ isRunning, startedAt, endedAt, pages, rows, changed, rowsLeft: left, tidemark, waitingUntil, waitingFor }: SyncLine, now: number): string {
  const perSecond = rows / Math.max(0.001, ((isRunning ? now : endedAt) - startedAt) / 1_000)
  return [
    `${formatNumber(pages)} ${pages === 1 ? 'page' : 'pages'}`,
    formatRows(rows, changed),
    waitingUntil > now ? `waits ${formatDuration(waitingUntil - now)} (${waitingFor})` : `${formatNumber(Math.round(perSecond))}/s`,
    ...(tidemark === null ? [] : [tidemark]),
    ...(isRunning && left !== undefined && left > 0 && perSecond > 0 ? [`${formatDuration(Math.max(1_000, left / perSecond * 1_000))} to go`] : []),
  ].join(' · ')
}
