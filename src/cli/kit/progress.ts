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

/** Shows the progress of cycles. */
export interface CycleDisplay {
  showProgress(sync: string, progress: CycleProgress): void
  showResult(result: CycleResult): void
  close(): void
}

export interface DisplayOptions {
  readonly reveal: boolean
  /** Cycles repeat until the process is stopped. */
  readonly continuous: boolean
}

export function createDisplay(cli: Cli, syncs: readonly string[], options: DisplayOptions): CycleDisplay {
  const { terminal } = cli
  if (terminal.json) return createJsonDisplay(cli, options.reveal)
  return terminal.isInteractive ? createLiveDisplay(cli, syncs, options) : createPlainDisplay(cli, options)
}

/** The result of a cycle as a JSON document. */
export function resultDocument(result: CycleResult, reveal: boolean): object {
  const { worker: _, startedAt, endedAt, retryAt, tidemark, drift, ...rest } = result
  return {
    ...rest,
    ...(drift.length > 0 && { drift }),
    tidemark: redactTidemark(tidemark, reveal),
    startedAt: isoTime(startedAt),
    endedAt: isoTime(endedAt),
    retryAt: isoTime(retryAt),
    error: result.error === null ? null : { ...result.error, advice: adviceFor(result.error.code, result.sync) },
  }
}

/** The result of a cycle as text. For a failure, the second line is the advice. */
export function formatResult(
  { terminal: { colors }, targetFlags }: Cli,
  result: CycleResult,
  reveal: boolean,
): string[] {
  const seconds = Math.max(0.001, (result.endedAt - result.startedAt) / 1_000)
  const rows = totalRows(result.counts)
  const facts = [
    result.pages === 0 ? null : `${formatNumber(result.pages)} ${result.pages === 1 ? 'page' : 'pages'}`,
    result.pages === 0 ? null : describeCounts(result.counts),
    result.pages === 0
      ? null
      : `${formatDuration(seconds * 1_000)}${rows > 100 ? `, ${formatNumber(Math.round(rows / seconds))} rows/s` : ''}`,
    result.tidemark === null ? null : `tidemark ${redactTidemark(result.tidemark, reveal)}`,
    result.waitedMs > 0 ? `waited ${formatDuration(result.waitedMs)}` : null,
    result.endReason,
    result.resumed ? 'resumed the unfinished cycle' : null,
  ]
    .filter((fact) => fact !== null)
    .join(' · ')
  const { error, stopReason, sync } = result
  if (error !== null) {
    const head = `${colors.red('✗')} ${sync}  ${colors.bold(error.code)}  ${toPrintable(error.message)}`
    return [
      facts === '' ? head : `${head}  ${colors.dim(facts)}`,
      `  ${addTargetFlags(adviceFor(error.code, sync), targetFlags)}`,
    ]
  }
  const drift =
    result.drift.length === 0
      ? []
      : [`  ${colors.yellow('•')} records changed shape: ${toPrintable(result.drift.join('; '))}`]
  if (stopReason === 'complete') return [`${colors.green('✓')} ${sync}  ${facts}`, ...drift]
  return [
    `${colors.yellow('•')} ${sync}  ${STOP_REASON_TEXT[stopReason] ?? stopReason}  ${colors.dim(facts)}`.trimEnd(),
  ]
}

const STOP_REASON_TEXT: Partial<Record<CycleResult['stopReason'], string>> = {
  cancelled: 'stopped; the next run continues here',
  max_pages: 'reached its page limit; the next run continues here',
  timeout: 'reached its time limit; the next run continues here',
  paused: 'paused; resume it with `tidemark resume`',
}

/** The number of rows read, and of rows changed if it differs. */
function formatRows(rows: number, changed: number): string {
  return rows === changed
    ? `${formatNumber(rows)} rows`
    : `${formatNumber(rows)} rows, ${formatNumber(changed)} changed`
}

// ── JSON output ─────────────────────────────────────────────────────────────────────────────────────────────────────

function createJsonDisplay({ terminal }: Cli, reveal: boolean): CycleDisplay {
  return {
    showProgress(sync, progress) {
      const { kind, ...facts } = progress
      terminal.printDocument({
        event: kind,
        sync,
        ...facts,
        ...('tidemark' in facts ? { tidemark: redactTidemark(facts.tidemark, reveal) } : {}),
      })
    },
    showResult() {},
    close() {},
  }
}

// ── Output to a file or a pipe ─────────────────────────────────────────────────────────────────────────────────────────────

const PLAIN_EVERY_MS = 2_000

function createPlainDisplay(cli: Cli, { reveal, continuous }: DisplayOptions): CycleDisplay {
  const { terminal } = cli
  const printedAt = new Map<string, number>()
  return {
    showProgress(sync, progress) {
      const now = performance.now()
      if (progress.kind === 'landed') {
        if (now - (printedAt.get(sync) ?? 0) < PLAIN_EVERY_MS) return
        terminal.print(
          `  ${sync}  page ${formatNumber(progress.page)}, ${formatRows(totalRows(progress.counts), changedRows(progress.counts))}${progress.left === undefined ? '' : `, ${formatNumber(progress.left)} left`}`,
        )
      } else if (progress.kind === 'waiting' || !continuous) terminal.print(`  ${sync}  ${describeProgress(progress)}`)
      printedAt.set(sync, now)
    },
    // In continuous mode, cycles without changes are not printed.
    showResult: (result) =>
      continuous && result.error === null && changedRows(result.counts) === 0
        ? undefined
        : terminal.print(...formatResult(cli, result, reveal)),
    close() {},
  }
}

function describeProgress(progress: Exclude<CycleProgress, { kind: 'landed' }>): string {
  if (progress.kind === 'waiting') return `waiting ${formatDuration(progress.ms)} (${progress.code})`
  return progress.resumed
    ? `cycle ${progress.cycle} resumes after page ${progress.page}`
    : `cycle ${progress.cycle} starts`
}

// ── Output to a terminal ─────────────────────────────────────────────────────────────────────────────────────────────────────

const DRAW_EVERY_MS = 100
const NAME_MIN = 12

/** The state of the newest cycle of a sync. */
interface SyncLine {
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

/** Redraws one line per sync in place. In continuous mode the line is reused; otherwise the result replaces it. */
function createLiveDisplay(cli: Cli, syncs: readonly string[], { reveal, continuous }: DisplayOptions): CycleDisplay {
  const { terminal } = cli
  const { colors } = terminal
  const lines = new Map<string, SyncLine>()
  const widest = Math.max(0, ...syncs.map((sync) => sync.length))
  // Names take at most a fifth of the line, but at least NAME_MIN characters, to leave room for the progress.
  const room = (): number => Math.min(widest, Math.max(NAME_MIN, Math.floor(terminal.columns / 5)))
  const lineOf = ([sync, line]: [string, SyncLine], now: number): string => {
    const text = `${padToWidth(truncateToWidth(sync, room()), room())}  ${formatSyncLine(line, now)}`
    if (line.waitingUntil > now) return colors.yellow(`▸ ${text}`)
    return line.isRunning ? `${colors.cyan('▸')} ${text}` : colors.dim(`· ${text}`)
  }
  const draw = (): void => {
    const now = performance.now()
    // If not all lines fit on the screen, running syncs come first.
    const order =
      lines.size < terminal.rows
        ? [...lines]
        : [...lines].toSorted(([, a], [, b]) => Number(b.isRunning) - Number(a.isRunning))
    terminal.draw(order.map((entry) => lineOf(entry, now)))
  }
  const timer = setInterval(draw, DRAW_EVERY_MS)
  const lineFor = (sync: string): SyncLine => {
    const line = lines.get(sync) ?? {
      startedAt: 0,
      endedAt: 0,
      isRunning: false,
      pages: 0,
      rows: 0,
      changed: 0,
      rowsLeft: undefined,
      tidemark: null,
      waitingUntil: 0,
      waitingFor: '',
    }
    if (!line.isRunning)
      Object.assign(line, {
        startedAt: performance.now(),
        isRunning: true,
        pages: 0,
        rows: 0,
        changed: 0,
        rowsLeft: undefined,
        waitingUntil: 0,
      })
    lines.set(sync, line)
    return line
  }
  return {
    showProgress(sync, progress) {
      const line = lineFor(sync)
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
      if (continuous && line !== undefined) {
        line.endedAt = performance.now()
        line.isRunning = false
      } else lines.delete(result.sync)
      draw()
      if (!continuous || result.error !== null) terminal.print(...formatResult(cli, result, reveal))
    },
    close() {
      clearInterval(timer)
      terminal.draw([])
    },
  }
}

/**
 * `3 pages · 300 rows, 12 changed · 120/s · 12:00:00Z · 2m left`, or `waiting 4s (RATE_LIMITED)` instead of the rate.
 * The most important part comes first, because the line may be cut off.
 */
function formatSyncLine(
  { isRunning, startedAt, endedAt, pages, rows, changed, rowsLeft, tidemark, waitingUntil, waitingFor }: SyncLine,
  now: number,
): string {
  const perSecond = rows / Math.max(0.001, ((isRunning ? now : endedAt) - startedAt) / 1_000)
  return [
    `${formatNumber(pages)} ${pages === 1 ? 'page' : 'pages'}`,
    formatRows(rows, changed),
    waitingUntil > now
      ? `waiting ${formatDuration(waitingUntil - now)} (${waitingFor})`
      : `${formatNumber(Math.round(perSecond))}/s`,
    ...(tidemark === null ? [] : [tidemark]),
    ...(isRunning && rowsLeft !== undefined && rowsLeft > 0 && perSecond > 0
      ? [`${formatDuration(Math.max(1_000, (rowsLeft / perSecond) * 1_000))} left`]
      : []),
  ].join(' · ')
}
