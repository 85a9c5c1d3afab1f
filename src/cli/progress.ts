import type { CycleResult, Progress } from '../engine/cycle-options.ts'
import type { Cli } from './cli.ts'
import { describeCounts, grouped, rowsOf } from './counts.ts'
import { duration } from './duration.ts'
import { isoTime } from './json-document.ts'
import { printable } from './printable.ts'
import { showTidemark } from './redact.ts'
import { adviceFor } from './report-error.ts'
import { clip, pad } from './table.ts'

/** Shows cycles while they run. */
export interface Display {
  progress(sync: string, progress: Progress): void
  done(result: CycleResult): void
  close(): void
}

export function displayFor(cli: Cli, syncs: readonly string[], options: { readonly reveal: boolean }): Display {
  const { terminal } = cli
  if (terminal.json) return eventLines(cli, options.reveal)
  return terminal.isLive ? liveLines(cli, syncs, options.reveal) : plainLines(cli, options.reveal)
}

/** What a cycle came to, as a document. */
export function resultDocument(result: CycleResult, reveal: boolean): object {
  const { worker: _, startedAt, endedAt, retryAt, tidemark, ...rest } = result
  return {
    ...rest, tidemark: showTidemark(tidemark, reveal), startedAt: isoTime(startedAt), endedAt: isoTime(endedAt), retryAt: isoTime(retryAt),
    error: result.error === null ? null : { ...result.error, advice: adviceFor(result.error.code, result.sync) },
  }
}

/** What a cycle came to, in words; the second line is what to do about it. */
export function resultLines({ terminal: { colors } }: Cli, result: CycleResult, reveal: boolean): string[] {
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
    return [facts === '' ? head : `${head}  ${colors.dim(facts)}`, `  ${adviceFor(error.code, sync)}`]
  }
  if (stopReason === 'complete') return [`${colors.green('✓')} ${sync}  ${facts}`]
  return [`${colors.yellow('•')} ${sync}  ${STOPPED[stopReason] ?? stopReason}  ${colors.dim(facts)}`.trimEnd()]
}

const STOPPED: Partial<Record<CycleResult['stopReason'], string>> = {
  cancelled: 'stopped as asked; the next run continues here',
  max_pages: 'used up its pages; the next run continues here',
  timeout: 'used up its time; the next run continues here',
  paused: 'was paused; `tidemark resume` lets it go on',
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

function plainLines(cli: Cli, reveal: boolean): Display {
  const { terminal } = cli
  const toldAt = new Map<string, number>()
  return {
    progress(sync, progress) {
      const now = performance.now()
      if (progress.kind === 'landed') {
        if (now - (toldAt.get(sync) ?? 0) < PLAIN_EVERY_MS) return
        terminal.print(`  ${sync}  page ${grouped(progress.page)}, ${grouped(rowsOf(progress.counts))} rows`)
      } else terminal.print(`  ${sync}  ${describe(progress)}`)
      toldAt.set(sync, now)
    },
    done: (result) => terminal.print(...resultLines(cli, result, reveal)),
    close() {},
  }
}

function describe(progress: Exclude<Progress, { kind: 'landed' }>): string {
  if (progress.kind === 'waiting') return `waits ${duration(progress.ms)} (${progress.code})`
  return progress.resumed ? `cycle ${progress.cycle} goes on after page ${progress.page}` : `cycle ${progress.cycle} begins`
}

// ── for a person ─────────────────────────────────────────────────────────────────────────────────────────────────────

const DRAW_EVERY_MS = 100

interface Line {
  readonly startedAt: number
  pages: number
  rows: number
  tidemark: string | null
  waitingUntil: number
  waitingFor: string
}

/** One line for each sync that runs, redrawn in place; each ends as a line that stays. */
function liveLines(cli: Cli, syncs: readonly string[], reveal: boolean): Display {
  const { terminal } = cli
  const { colors } = terminal
  const running = new Map<string, Line>()
  const name = Math.max(...syncs.map((sync) => sync.length))
  const draw = (): void => terminal.draw([...running].map(([sync, line]) => {
    const now = performance.now()
    const seconds = Math.max(0.001, (now - line.startedAt) / 1_000)
    const waits = line.waitingUntil > now ? ` · waits ${duration(line.waitingUntil - now)} (${line.waitingFor})` : ''
    const tidemark = line.tidemark === null ? '' : ` · ${line.tidemark}`
    const facts = `${grouped(line.pages)} pages · ${grouped(line.rows)} rows · ${grouped(Math.round(line.rows / seconds))}/s${waits}${tidemark}`
    return `${colors.cyan('▸')} ${pad(sync, name)}  ${clip(facts, terminal.columns - name - 6)}`
  }))
  const timer = setInterval(draw, DRAW_EVERY_MS)
  return {
    progress(sync, progress) {
      const line = running.get(sync) ?? { startedAt: performance.now(), pages: 0, rows: 0, tidemark: null, waitingUntil: 0, waitingFor: '' }
      running.set(sync, line)
      if (progress.kind === 'waiting') {
        line.waitingUntil = performance.now() + progress.ms
        line.waitingFor = progress.code
      } else if (progress.kind === 'landed') {
        line.pages = progress.page
        line.rows = rowsOf(progress.counts)
        line.tidemark = showTidemark(progress.tidemark, reveal)
      }
    },
    done(result) {
      running.delete(result.sync)
      draw()
      terminal.print(...resultLines(cli, result, reveal))
    },
    close() {
      clearInterval(timer)
      terminal.draw([])
    },
  }
}
