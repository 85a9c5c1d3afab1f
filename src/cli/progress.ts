import type { CycleResult, Progress } from '../engine/cycle-options.ts'
import { systemClock } from '../platform/clock.ts'
import type { Cli } from './cli.ts'
import { changedOf, describeCounts, grouped, rowsOf } from './counts.ts'
import { duration } from './duration.ts'
import { isoTime } from './json-document.ts'
import { printable } from './printable.ts'
import { showTidemark } from '../redaction/redact-state.ts'
import { adviceFor } from './report-error.ts'
import { shortTidemark } from './short-tidemark.ts'
import { clip, pad } from './table.ts'
import { withTargetFlags } from './target-flags.ts'

/** Shows cycles while they run. */
export interface Display {
  progress(sync: string, progress: Progress): void
  done(result: CycleResult): void
  close(): void
}

export interface DisplayOptions {
  readonly reveal: boolean
  /** Cycles follow one another until somebody stops them. */
  readonly lasting: boolean
}

export function displayFor(cli: Cli, syncs: readonly string[], options: DisplayOptions): Display {
  const { terminal } = cli
  if (terminal.json) return eventLines(cli, options.reveal)
  return terminal.isLive ? liveLines(cli, syncs, options) : plainLines(cli, options)
}

/** What a cycle came to, as a document. */
export function resultDocument(result: CycleResult, reveal: boolean): object {
  const { worker: _, startedAt, endedAt, retryAt, tidemark, drift, ...rest } = result
  return {
    ...rest, ...(drift.length > 0 && { drift }), tidemark: showTidemark(tidemark, reveal), startedAt: isoTime(startedAt), endedAt: isoTime(endedAt), retryAt: isoTime(retryAt),
    error: result.error === null ? null : { ...result.error, advice: adviceFor(result.error.code, result.sync) },
  }
}

/** What a cycle came to, in words; the second line is what to do about it. */
export function resultLines({ terminal: { colors }, targetFlags }: Cli, result: CycleResult, reveal: boolean): string[] {
  const seconds = Math.max(0.001, (result.endedAt - result.startedAt) / 1_000)
  const rows = rowsOf(result.counts)
  const facts = [
    result.pages === 0 ? null : `${grouped(result.pages)} ${result.pages === 1 ? 'page' : 'pages'}`,
    result.pages === 0 ? null : describeCounts(result.counts),
    result.pages === 0 ? null : `${duration(seconds * 1_000)}${rows > 100 ? `, ${grouped(Math.round(rows / seconds))} rows/s` : ''}`,
    result.tidemark === null ? null : `tidemark ${showTidemark(result.tidemark, reveal)}`,
    result.waitedMs > 0 ? `waited ${duration(result.waitedMs)}` : null,
    result.stopWord,
    result.resumed ? 'took up the unfinished cycle' : null,
  ].filter((fact) => fact !== null).join(' · ')
  const { error, stopReason, sync } = result
  if (error !== null) {
    const head = `${colors.red('✗')} ${sync}  ${colors.bold(error.code)}  ${printable(error.message)}`
    return [facts === '' ? head : `${head}  ${colors.dim(facts)}`, `  ${withTargetFlags(adviceFor(error.code, sync), targetFlags)}`]
  }
  const drift = result.drift.length === 0 ? [] : [`  ${colors.yellow('•')} not as before: ${printable(result.drift.join('; '))}`]
  if (stopReason === 'complete') return [`${colors.green('✓')} ${sync}  ${facts}`, ...drift]
  return [`${colors.yellow('•')} ${sync}  ${STOPPED[stopReason] ?? stopReason}  ${colors.dim(facts)}`.trimEnd()]
}

const STOPPED: Partial<Record<CycleResult['stopReason'], string>> = {
  cancelled: 'stopped as asked; the next run continues here',
  max_pages: 'used up its pages; the next run continues here',
  timeout: 'used up its time; the next run continues here',
  paused: 'was paused; `tidemark resume` lets it go on',
}

/** Rows that were read, and how many of them changed something where that is not all. */
function readRows(rows: number, changed: number): string {
  return rows === changed ? `${grouped(rows)} rows` : `${grouped(rows)} rows, ${grouped(changed)} changed`
}

// ── for programs ─────────────────────────────────────────────────────────────────────────────────────────────────────

function eventLines({ terminal }: Cli, reveal: boolean): Display {
  return {
    progress(sync, progress) {
      const { kind, ...facts } = progress
      terminal.document({ event: kind, sync, ...facts, ...('tidemark' in facts ? { tidemark: showTidemark(facts.tidemark, reveal) } : {}) })
    },
    done() {},
    close() {},
  }
}

// ── for a file or a pipe ─────────────────────────────────────────────────────────────────────────────────────────────

const PLAIN_EVERY_MS = 2_000

function plainLines(cli: Cli, { reveal, lasting }: DisplayOptions): Display {
  const { terminal } = cli
  const toldAt = new Map<string, number>()
  return {
    progress(sync, progress) {
      const now = performance.now()
      if (progress.kind === 'landed') {
        if (now - (toldAt.get(sync) ?? 0) < PLAIN_EVERY_MS) return
        terminal.print(`  ${sync}  page ${grouped(progress.page)}, ${readRows(rowsOf(progress.counts), changedOf(progress.counts))}${progress.left === undefined ? '' : `, ${grouped(progress.left)} left`}`)
      } else if (progress.kind === 'waiting' || !lasting) terminal.print(`  ${sync}  ${describe(progress)}`)
      toldAt.set(sync, now)
    },
    // What runs for ever is told of where something came of it.
    done: (result) => (lasting && result.error === null && changedOf(result.counts) === 0 ? undefined : terminal.print(...resultLines(cli, result, reveal))),
    close() {},
  }
}

function describe(progress: Exclude<Progress, { kind: 'landed' }>): string {
  if (progress.kind === 'waiting') return `waits ${duration(progress.ms)} (${progress.code})`
  return progress.resumed ? `cycle ${progress.cycle} goes on after page ${progress.page}` : `cycle ${progress.cycle} begins`
}

// ── for a person ─────────────────────────────────────────────────────────────────────────────────────────────────────

const DRAW_EVERY_MS = 100
const NAME_MIN = 12

interface Line {
  /** Of the newest cycle, like everything here. */
  startedAt: number
  endedAt: number
  isRunning: boolean
  pages: number
  rows: number
  left: number | undefined
  tidemark: string | null
  waitingUntil: number
  waitingFor: string
  changed: number
}

/** One line for each sync, redrawn in place. It ends as a line that stays; where cycles follow one another, it goes on with them. */
function liveLines(cli: Cli, syncs: readonly string[], { reveal, lasting }: DisplayOptions): Display {
  const { terminal } = cli
  const { colors } = terminal
  const lines = new Map<string, Line>()
  const widest = Math.max(0, ...syncs.map((sync) => sync.length))
  // A name may take a fifth of the line, or as much as tells most of them apart: what moves is beside it.
  const room = (): number => Math.min(widest, Math.max(NAME_MIN, Math.floor(terminal.columns / 5)))
  const lineOf = ([sync, line]: [string, Line], now: number): string => {
    const text = `${pad(clip(sync, room()), room())}  ${factsOf(line, now)}`
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
  const begin = (sync: string): Line => {
    const line = lines.get(sync) ?? { startedAt: 0, endedAt: 0, isRunning: false, pages: 0, rows: 0, changed: 0, left: undefined, tidemark: null, waitingUntil: 0, waitingFor: '' }
    if (!line.isRunning) Object.assign(line, { startedAt: performance.now(), isRunning: true, pages: 0, rows: 0, changed: 0, left: undefined, waitingUntil: 0 })
    lines.set(sync, line)
    return line
  }
  return {
    progress(sync, progress) {
      const line = begin(sync)
      if (progress.kind === 'waiting') {
        line.waitingUntil = performance.now() + progress.ms
        line.waitingFor = progress.code
      } else if (progress.kind === 'landed') {
        line.pages = progress.page
        line.rows = rowsOf(progress.counts)
        line.changed = changedOf(progress.counts)
        line.left = progress.left
        const tidemark = showTidemark(progress.tidemark, reveal)
        line.tidemark = tidemark === null ? null : shortTidemark(tidemark, systemClock.now())
      }
    },
    done(result) {
      const line = lines.get(result.sync)
      if (lasting && line !== undefined) {
        line.endedAt = performance.now()
        line.isRunning = false
      } else lines.delete(result.sync)
      draw()
      if (!lasting || result.error !== null) terminal.print(...resultLines(cli, result, reveal))
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
function factsOf({ isRunning, startedAt, endedAt, pages, rows, changed, left, tidemark, waitingUntil, waitingFor }: Line, now: number): string {
  const perSecond = rows / Math.max(0.001, ((isRunning ? now : endedAt) - startedAt) / 1_000)
  return [
    `${grouped(pages)} ${pages === 1 ? 'page' : 'pages'}`,
    readRows(rows, changed),
    waitingUntil > now ? `waits ${duration(waitingUntil - now)} (${waitingFor})` : `${grouped(Math.round(perSecond))}/s`,
    ...(tidemark === null ? [] : [tidemark]),
    ...(isRunning && left !== undefined && left > 0 && perSecond > 0 ? [`${duration(Math.max(1_000, left / perSecond * 1_000))} to go`] : []),
  ].join(' · ')
}
