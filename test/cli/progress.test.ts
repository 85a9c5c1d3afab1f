import { expect, test, vi } from 'vitest'
import type { CycleResult } from '../../src/engine/cycle-options.ts'
import type { Cli } from '../../src/cli/cli.ts'
import { displayFor } from '../../src/cli/progress.ts'
import { Terminal } from '../../src/cli/terminal.ts'

const NOTHING = { created: 0, updated: 0, deleted: 0, swept: 0, unchanged: 0, stale: 0, missing: 0, quarantined: 0 }

test('on a terminal each sync has one live line; what ends, and what is logged, stays above them', () => {
  vi.useFakeTimers()
  const { cli, lines } = screenOf(true)
  const display = displayFor(cli, ['accounts', 'contacts'], { reveal: false })
  display.progress('accounts', { kind: 'begun', cycle: 1, resumed: false, page: 0 })
  display.progress('contacts', { kind: 'begun', cycle: 2, resumed: false, page: 0 })
  display.progress('contacts', { kind: 'landed', page: 3, counts: { ...NOTHING, created: 3_000 }, tidemark: null, position: 3_000 })
  vi.advanceTimersByTime(100)
  expect(lines()).toEqual([expect.stringMatching(/^▸ accounts {2}0 pages · 0 rows/), expect.stringMatching(/^▸ contacts {2}3 pages · 3,000 rows/)])
  cli.terminal.log('{"message":"a line of the log"}\n')
  display.progress('contacts', { kind: 'waiting', ms: 30_000, code: 'RATE_LIMITED' })
  vi.advanceTimersByTime(200)
  expect(lines()).toEqual(['{"message":"a line of the log"}', expect.stringMatching(/^▸ accounts/), expect.stringMatching(/waits 2\ds \(RATE_LIMITED\)$/)])
  display.done(result('accounts'))
  expect(lines().slice(1)).toEqual([expect.stringMatching(/^✓ accounts/), expect.stringMatching(/^▸ contacts/)])
  display.done(result('contacts'))
  display.close()
  vi.advanceTimersByTime(1_000)
  expect(lines().slice(1)).toEqual([expect.stringMatching(/^✓ accounts/), expect.stringMatching(/^✓ contacts/)])
  for (const line of lines().slice(1)) expect(line.length).toBeLessThanOrEqual(80)
  vi.useRealTimers()
})

test('piped, each step is a line, and pages are told of only now and then', () => {
  const { cli, lines } = screenOf(false)
  const display = displayFor(cli, ['accounts'], { reveal: false })
  display.progress('accounts', { kind: 'begun', cycle: 1, resumed: true, page: 7 })
  for (let page = 8; page < 50; page++) display.progress('accounts', { kind: 'landed', page, counts: NOTHING, tidemark: null, position: 0 })
  display.done(result('accounts'))
  display.close()
  expect(lines()).toEqual(['  accounts  cycle 1 goes on after page 7', expect.stringMatching(/^✓ accounts {2}1 page · 2 created/)])
})

function result(sync: string): CycleResult {
  return {
    worker: 'w', sync, cycle: 1, stopReason: 'complete', stopWord: null, resumed: false, pages: 1, counts: { ...NOTHING, created: 2 }, retries: 0, waitedMs: 0,
    startedAt: 0, endedAt: 5, version: 1, position: 2, tidemark: null, error: null, retryAt: null,
  }
}

function screenOf(isTTY: boolean): { cli: Cli; lines: () => string[] } {
  const screen = new Screen()
  const stream = { write: (text: string) => screen.write(text), on: () => {}, isTTY, columns: 80 }
  const terminal = new Terminal({ stdout: stream, stderr: stream, environment: { NO_COLOR: '1' }, json: false })
  return { lines: () => screen.lines, cli: { terminal, environment: {}, folder: '.', listenForStop: () => new AbortController().signal } }
}

/** As much of a terminal as the live lines use: newline, up, erase. */
class Screen {
  lines: string[] = []
  #row = 0

  write(text: string): boolean {
    const escape = String.fromCharCode(27)
    for (const [, up, , plain] of text.matchAll(new RegExp(`${escape}\\[(?:(\\d+)F|(0J|2K))|([^${escape}]+)`, 'g'))) {
      if (up !== undefined) this.#row -= Number(up)
      else if (plain === undefined) this.lines = this.lines.slice(0, this.#row)
      else for (const line of plain.split(/(?<=\n)/)) this.lines[this.#row++] = line.replace('\n', '')
    }
    return true
  }
}
