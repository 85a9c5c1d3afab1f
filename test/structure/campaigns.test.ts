import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { addTotals, nextSeedOf, renderTable, updatePage } from '../../scripts/campaign-results.mjs'

const root = join(import.meta.dirname, '../..')
const runs = [
  {
    date: '2026-01-01',
    minutes: 10,
    cores: 2,
    nextSeed: 2_000_001,
    campaigns: [{ name: 'engine', worlds: 1_000, faults: 40_000, violations: 0 }],
  },
  {
    date: '2026-01-02',
    minutes: 5,
    cores: 4,
    nextSeed: 6_000_001,
    campaigns: [
      { name: 'engine', worlds: 500, faults: 20_000, violations: 1 },
      { name: 'verify', worlds: 30, faults: 90, violations: 0 },
    ],
  },
]

describe('the results of campaigns', () => {
  test('the page of guarantees shows those of the file', () => {
    const recorded = JSON.parse(readFileSync(join(root, 'docs/explanation/campaigns.json'), 'utf8'))
    const page = readFileSync(join(root, 'docs/explanation/guarantees.md'), 'utf8')
    expect(updatePage(page, recorded)).toBe(page)
  })

  test('are added up by campaign, over all runs', () => {
    expect(renderTable(runs).split('\n')).toEqual([
      '2 runs, 40 minutes of one core, the last on 2026-01-02.',
      '',
      '| campaign | worlds | faults | violations |',
      '|---|---|---|---|',
      '| engine | 1,500 | 60,000 | 1 |',
      '| verify | 30 | 90 | 0 |',
    ])
    expect(renderTable([])).toBe('No run is recorded yet.')
    expect(addTotals('all', runs[1]!.campaigns)).toEqual({ name: 'all', worlds: 530, faults: 20_090, violations: 1 })
  })

  test('the next run begins with a seed that no run has used', () => {
    expect(nextSeedOf([])).toBe(1)
    expect(nextSeedOf(runs)).toBe(6_000_001)
    expect(nextSeedOf(runs.toReversed())).toBe(6_000_001)
  })

  test('a page without a place for them is refused', () => {
    expect(() => updatePage('# Guarantees', runs)).toThrow('campaigns')
  })
})
