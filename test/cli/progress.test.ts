import { PassThrough } from 'node:stream'
import { expect, test, vi } from 'vitest'
import type { CycleResult } from '../../src/engine/cycle-options.ts'
import type { Cli } from '../../src/cli/cli.ts'
import { createDisplay } from '../../src/cli/kit/progress.ts'
import { truncateToWidth } from '../../src/cli/kit/table.ts'
import { Terminal } from '../../src/cli/kit/terminal.ts'

const NOTHING = { created: 0, updated: 0, deleted: 0, swept: 0, unchanged: 0, stale: 0, missing: 0, quarantined: 0 }

test('on a terminal each sync has one live line; results and log lines stay above them', () => {
  vi.useFakeTimers()
  const { cli, lines } = screenOf(true)
  const display = createDisplay(cli, ['accounts', 'contacts'], { reveal: false, continuous: false })
  display.showProgress('accounts', { kind: 'begun', cycle: 1, resumed: false, page: 0 })
  display.showProgress('contacts', { kind: 'begun', cycle: 2, resumed: false, page: 0 })
  display.showProgress('contacts', {
    kind: 'landed',
    cycle: 1,
    page: 3,
    counts: { ...NOTHING, created: 3_000 },
    tidemark: null,
    headSequence: 3_000,
  })
  vi.advanceTimersByTime(100)
  expect(lines()).toEqual([
    expect.stringMatching(/^▸ accounts {2}0 pages · 0 rows/),
    expect.stringMatching(/^▸ contacts {2}3 pages · 3,000 rows/),
  ])
  cli.terminal.log('{"message":"a line of the log"}\n')
  display.showProgress('contacts', { kind: 'waiting', cycle: 1, ms: 30_000, code: 'RATE_LIMITED' })
  vi.advanceTimersByTime(200)
  expect(lines()).toEqual([
    '{"message":"a line of the log"}',
    expect.stringMatching(/^▸ accounts/),
    expect.stringMatching(/waiting 2\ds \(RATE_LIMITED\)$/),
  ])
  display.showResult(result('accounts'))
  expect(lines().slice(1)).toEqual([expect.stringMatching(/^✓ accounts/), expect.stringMatching(/^▸ contacts/)])
  display.showResult(result('contacts'))
  display.close()
  vi.advanceTimersByTime(1_000)
  expect(lines().slice(1)).toEqual([expect.stringMatching(/^✓ accounts/), expect.stringMatching(/^✓ contacts/)])
  for (const line of lines().slice(1)) expect(line.length).toBeLessThanOrEqual(80)
  vi.useRealTimers()
})

test('with more syncs than rows and names wider than the screen, running syncs come first and no line wraps', () => {
  vi.useFakeTimers()
  const names = Array.from({ length: 30 }, (_, n) => `sync-${n}-${'x'.repeat(n * 4)}`)
  const { cli, lines } = screenOf(true)
  const display = createDisplay(cli, names, { reveal: false, continuous: true })
  for (const name of names)
    display.showProgress(name, {
      kind: 'landed',
      cycle: 1,
      page: 1,
      counts: { ...NOTHING, created: 10 },
      tidemark: '2026-01-31T12:00:00.000000Z',
      headSequence: 1,
      left: 100,
    })
  for (const name of names.slice(0, 28)) display.showResult(result(name))
  vi.advanceTimersByTime(1_000)
  expect(lines().length).toBe(23)
  expect(lines().map((line) => line[0])).toEqual(['▸', '▸', ...Array.from({ length: 20 }, () => '·'), '…'])
  expect(lines().at(-1)).toBe('… and 8 more')
  expect(Math.max(...lines().map((line) => line.length))).toBeLessThan(80)
  // A long name leaves room for what moves beside it.
  expect(lines()[1]).toMatch(/^▸ sync-29-xxxxxxx… {2}1 page · 10 rows · \d+\/s · 2026-01-31 · .*left$/)
  display.close()
  expect(lines()).toEqual([])
  vi.useRealTimers()
})

test('on a narrow screen the tidemark of today is its time, and stays when there is no room for more', () => {
  vi.useFakeTimers({ now: Date.parse('2026-01-31T12:30:00Z') })
  const { cli, lines } = screenOf(true, 60)
  const display = createDisplay(cli, ['customers-backfill'], { reveal: false, continuous: false })
  display.showProgress('customers-backfill', {
    kind: 'landed',
    cycle: 1,
    page: 12,
    counts: { ...NOTHING, created: 1_200 },
    tidemark: '2026-01-31T12:00:07.123456Z',
    headSequence: 1,
    left: 9_000,
  })
  vi.advanceTimersByTime(10_000)
  expect(lines()).toEqual([
    expect.stringMatching(/^▸ customers-b… {2}12 pages · 1,200 rows · [\d,]+\/s · 12:00:07Z.*…$/),
  ])
  display.showProgress('customers-backfill', { kind: 'waiting', cycle: 1, ms: 60_000, code: 'RATE_LIMITED' })
  vi.advanceTimersByTime(1_000)
  expect(lines()[0]).toMatch(/^▸ customers-b… {2}12 pages · 1,200 rows · waiting 59s \(RATE/)
  display.close()
  vi.useRealTimers()
})

test('a continuous sync keeps its line, which shows the newest cycle', () => {
  vi.useFakeTimers()
  const { cli, lines } = screenOf(true)
  const display = createDisplay(cli, ['accounts'], { reveal: false, continuous: true })
  const landed = (rows: number, left?: number): void =>
    display.showProgress('accounts', {
      kind: 'landed',
      cycle: 1,
      page: 1,
      counts: { ...NOTHING, updated: rows },
      tidemark: null,
      headSequence: 1,
      ...(left !== undefined && { left }),
    })
  display.showProgress('accounts', { kind: 'begun', cycle: 1, resumed: false, page: 0 })
  vi.advanceTimersByTime(1_000)
  landed(10, 1_200)
  vi.advanceTimersByTime(1_000)
  expect(lines()).toEqual([expect.stringMatching(/^▸ accounts {2}1 page · 10 rows · 5\/s · [34]m( \d+s)? left$/)])
  display.showResult(result('accounts'))
  display.showProgress('accounts', { kind: 'begun', cycle: 2, resumed: false, page: 0 })
  display.showProgress('accounts', {
    kind: 'landed',
    cycle: 2,
    page: 1,
    counts: { ...NOTHING, updated: 5, unchanged: 20 },
    tidemark: null,
    headSequence: 1,
  })
  vi.advanceTimersByTime(100)
  expect(lines()).toEqual([expect.stringMatching(/^▸ accounts {2}1 page · 25 rows, 5 changed · \d+\/s$/)])
  display.showResult({
    ...result('accounts'),
    error: { code: 'SOURCE_UNAVAILABLE', message: 'It is down.', advice: '' },
  })
  expect(lines()).toEqual([
    expect.stringMatching(/^✗ accounts {2}SOURCE_UNAVAILABLE {2}It is down\./),
    expect.stringMatching(/^ {2}\S/),
    expect.stringMatching(/^· accounts/),
  ])
  display.close()
  vi.useRealTimers()
})

test('piped and continuous, only cycles with changes are printed', () => {
  const { cli, lines } = screenOf(false)
  const display = createDisplay(cli, ['accounts'], { reveal: false, continuous: true })
  display.showProgress('accounts', { kind: 'begun', cycle: 1, resumed: false, page: 0 })
  display.showResult({ ...result('accounts'), counts: { ...NOTHING, unchanged: 7 } })
  expect(lines()).toEqual([])
  display.showResult(result('accounts'))
  expect(lines()).toEqual([expect.stringMatching(/^✓ accounts/)])
})

test('a line cut to the screen keeps its colours and ends them', () => {
  const red = `${String.fromCharCode(27)}[31mred and more${String.fromCharCode(27)}[39m`
  expect(truncateToWidth(`a ${red} b`, 6)).toBe(`a ${String.fromCharCode(27)}[31mred${String.fromCharCode(27)}[39m…`)
  expect(truncateToWidth(`a ${red} b`, 16)).toBe(`a ${red} b`)
})

test('after the screen becomes narrower, all wrapped rows of the previous drawing are erased', () => {
  const written: string[] = []
  const stream = { write: (text: string) => written.push(text), on: () => {}, isTTY: true, columns: 80, rows: 24 }
  const terminal = new Terminal({ stdout: stream, stderr: stream, environment: { NO_COLOR: '1' }, json: false })
  terminal.draw(['x'.repeat(70), 'y'])
  stream.columns = 40
  terminal.draw(['z'])
  expect(written.at(-1)).toBe(
    `${String.fromCharCode(27)}[3F${String.fromCharCode(27)}[0J${String.fromCharCode(27)}[2Kz\n`,
  )
})

test('the alternate screen is drawn from the top after a resize; at the end the previous screen returns with the last lines below it', () => {
  const written: string[] = []
  const size: [number, number] = [80, 24]
  // The event of a new size comes late: the current size counts.
  const stream = {
    write: (text: string) => written.push(text),
    on: () => {},
    isTTY: true,
    columns: 80,
    rows: 24,
    getWindowSize: () => size,
  }
  const terminal = new Terminal({ stdout: stream, stderr: stream, environment: { NO_COLOR: '1' }, json: false })
  const escape = String.fromCharCode(27)
  terminal.enterFullScreen()
  terminal.draw(['x'.repeat(100), 'y'])
  size[0] = 20
  terminal.draw(['x'.repeat(100), 'z'])
  expect(written).toEqual([
    `${escape}[?1049h`,
    `${escape}[H${escape}[0J${escape}[2K${'x'.repeat(78)}…\n${escape}[2Ky\n`,
    `${escape}[H${escape}[0J${escape}[2K${'x'.repeat(18)}…\n${escape}[2Kz\n`,
  ])
  terminal.leaveFullScreen()
  expect(written.slice(3)).toEqual([`${escape}[?1049l`, `${'x'.repeat(18)}…\nz\n`])
  terminal.draw(['again'])
  expect(written.at(-1)).toBe(`${escape}[2Kagain\n`)
})

test('piped, there is no alternate screen', () => {
  const written: string[] = []
  const stream = { write: (text: string) => written.push(text), on: () => {} }
  const terminal = new Terminal({ stdout: stream, stderr: stream, environment: {}, json: false })
  terminal.enterFullScreen()
  terminal.leaveFullScreen()
  expect(written).toEqual([])
})

test('piped, each step is a line, and pages are printed only at intervals', () => {
  const { cli, lines } = screenOf(false)
  const display = createDisplay(cli, ['accounts'], { reveal: false, continuous: false })
  display.showProgress('accounts', { kind: 'begun', cycle: 1, resumed: true, page: 7 })
  for (let page = 8; page < 50; page++)
    display.showProgress('accounts', {
      kind: 'landed',
      cycle: 1,
      page,
      counts: NOTHING,
      tidemark: null,
      headSequence: 0,
    })
  display.showResult(result('accounts'))
  display.close()
  expect(lines()).toEqual([
    '  accounts  cycle 1 resumes after page 7',
    expect.stringMatching(/^✓ accounts {2}1 page · 2 created/),
  ])
})

function result(sync: string): CycleResult {
  return {
    worker: 'w',
    sync,
    cycle: 1,
    stopReason: 'complete',
    drift: [],
    endReason: null,
    resumed: false,
    pages: 1,
    counts: { ...NOTHING, created: 2 },
    retries: 0,
    waitedMs: 0,
    startedAt: 0,
    endedAt: 5,
    version: 1,
    headSequence: 2,
    tidemark: null,
    error: null,
    retryAt: null,
  }
}

function screenOf(isTTY: boolean, columns = 80): { cli: Cli; lines: () => string[] } {
  const screen = new Screen()
  const stream = { write: (text: string) => screen.write(text), on: () => {}, isTTY, columns }
  const terminal = new Terminal({ stdout: stream, stderr: stream, environment: { NO_COLOR: '1' }, json: false })
  return {
    lines: () => screen.lines,
    cli: {
      terminal,
      stdout: new PassThrough(),
      targetFlags: [],
      environment: {},
      folder: '.',
      listenForStop: () => new AbortController().signal,
    },
  }
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
