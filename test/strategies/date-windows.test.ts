import { describe, expect, test } from 'vitest'
import type { SyncContext } from '../../src/contract/index.ts'
import { dateWindows, type DateWindowsOptions } from '../../src/strategies/date-windows.ts'

const START = Date.parse('2024-03-01T06:00:00Z')

/** All windows, as `from/to`, through every page of the list. */
async function windowsOf(options: DateWindowsOptions, startedAt = START): Promise<string[]> {
  const list = dateWindows(options)
  const context = { cycle: { id: 1, mode: 'replace', startedAt, page: 1 } } as SyncContext
  const found: string[] = []
  for (let cursor: any; ;) {
    const { partitions, next } = await list(cursor, context)
    found.push(...partitions.map(({ value: { from, to } }) => `${from}/${to}`.replaceAll(':00.000Z', '')))
    expect(partitions.every(({ key, value }) => key === value.from)).toBe(true)
    if (next === undefined) return found
    cursor = next
  }
}

describe('dateWindows', () => {
  test('the windows cover the span without gaps, and the last one ends with the cycle', async () => {
    expect(await windowsOf({ from: '2024-02-28', step: 'P1D' })).toEqual([
      '2024-02-28T00:00/2024-02-29T00:00',
      '2024-02-29T00:00/2024-03-01T00:00',
      '2024-03-01T00:00/2024-03-01T06:00',
    ])
  })

  test('months follow the calendar, counted from the first window', async () => {
    expect(await windowsOf({ from: '2023-12-31', to: '2024-04-30', step: 'P1M' })).toEqual([
      '2023-12-31T00:00/2024-01-31T00:00',
      '2024-01-31T00:00/2024-02-29T00:00',
      '2024-02-29T00:00/2024-03-31T00:00',
      '2024-03-31T00:00/2024-04-30T00:00',
    ])
  })

  test('a long span is listed in pages', async () => {
    const windows = await windowsOf({
      from: '2024-01-01T00:00:00+01:00',
      to: '2024-02-18T00:00:00+01:00',
      step: 'PT1H',
    })
    expect(windows).toHaveLength(48 * 24)
    for (const [index, window] of windows.entries())
      expect(window.split('/')[0]).toBe(index === 0 ? '2023-12-31T23:00' : windows[index - 1]!.split('/')[1])
  })

  test('a span that has not begun has no windows', async () => {
    expect(await windowsOf({ from: '2024-03-01T06:00:00Z', step: 'P1D' })).toEqual([])
  })

  test('a time or a step that cannot be read is refused', () => {
    for (const step of ['P', 'P0D', 'PT', '1D', 'P1.5D'])
      expect(() => dateWindows({ from: '2024-01-01', step })).toThrow(/step/)
    for (const from of ['yesterday', '2024-02-30', '2024-01-01T00:00:00'])
      expect(() => dateWindows({ from, step: 'P1D' })).toThrow(/from/)
  })
})
