import { describe, expect, test } from 'vitest'
import { EMPTY_CHECKPOINT, type Checkpoint, type CycleRecord, type SyncStatusRow } from '../../src/contract/index.ts'
import { computeCoverage, parseFrontier, type Coverage, type CoverageFacts } from '../../src/runner/coverage.ts'

const NOW = Date.UTC(2026, 0, 1)

function standing(checkpoint: Partial<Checkpoint>, recent: Partial<CycleRecord>[] = []): SyncStatusRow {
  return { worker: 'w', sync: 's', checkpoint: { ...EMPTY_CHECKPOINT, ...checkpoint }, recent: recent as CycleRecord[] }
}

function shape(given: SyncStatusRow, facts: Partial<CoverageFacts> = {}): string {
  const coverage = computeCoverage(given, {
    mode: 'incremental',
    frontier: null,
    pair: undefined,
    siblings: new Map(),
    ...facts,
  })
  expect(sum(coverage)).toBeCloseTo(1)
  return `${coverage.kind}: ${coverage.parts.map(({ state, share, edge }) => `${state} ${Math.round(share * 100)}${edge === undefined ? '' : ` ${edge}`}`).join(', ')}`
}

function sum({ parts }: Coverage): number {
  return parts.reduce((total, { share }) => total + share, 0)
}

const inflight = (page: number): Pick<Checkpoint, 'inflight'> => ({
  inflight: { cycle: 2, page, startedAt: NOW } as Checkpoint['inflight'],
})
const done = { lastSuccessAt: NOW }

describe('the coverage of a sync', () => {
  test('nothing before the first run, a part while reading, everything after a complete cycle', () => {
    expect(shape(standing({}))).toBe('stream: hole 100')
    expect(shape(standing(inflight(3)))).toBe('stream: filling 50 head, hole 50')
    expect(shape(standing(done), { mode: 'replace' })).toBe('snapshot: proven 100')
    // A second full read does not reduce the proven part.
    expect(shape(standing({ ...done, ...inflight(1) }), { mode: 'replace' })).toBe('snapshot: proven 100')
  })

  test('an interrupted read is a hole, not in progress', () => {
    expect(shape(standing({ ...inflight(3), failures: 1 }))).toBe('stream: hole 100')
  })

  test('the progress of a cycle is estimated from the pages of the previous one', () => {
    const before = { cycle: 1, stopReason: 'complete', mode: 'replace', pages: 10 } as const
    expect(
      computeCoverage(standing({ ...done, ...inflight(4) }, [before]), {
        mode: 'replace',
        frontier: null,
        pair: undefined,
        siblings: new Map(),
      }).progress,
    ).toBe(0.4)
    expect(
      computeCoverage(standing({ ...done, ...inflight(40) }, [before]), {
        mode: 'replace',
        frontier: null,
        pair: undefined,
        siblings: new Map(),
      }).progress,
    ).toBe(0.95)
    expect(
      computeCoverage(standing({ ...done, ...inflight(4) }, []), {
        mode: 'replace',
        frontier: null,
        pair: undefined,
        siblings: new Map(),
      }).progress,
    ).toBeNull()
  })

  test('a pair is one bar: the backfill left of the anchor, the delta right of it', () => {
    const pair = { role: 'delta', backfill: 'b' } as const
    const other = (checkpoint: Partial<Checkpoint>): Partial<CoverageFacts> => ({
      pair,
      siblings: new Map([['b', standing(checkpoint)]]),
    })
    expect(shape(standing(done), other(done))).toBe('pair: proven 50, proven 50 anchor')
    expect(shape(standing(done), other({}))).toBe('pair: hole 50, proven 50 anchor')
    expect(shape(standing(done), other(inflight(1)))).toBe('pair: filling 25 head, hole 25, proven 50 anchor')
    expect(shape(standing({}), other(done))).toBe('pair: proven 50, hole 50 anchor')
  })

  test('for a list sorted newest first, head and tail come from the state', () => {
    const state = (given: object): string =>
      JSON.stringify({ phase: 'backfill', anchors: '', checkedAt: NOW, tailComplete: false, ...given })
    const frontier = (given: object): Partial<CoverageFacts> => ({ frontier: parseFrontier(state(given)) })
    expect(shape(standing(inflight(1)), frontier({}))).toBe('frontier: hole 20, filling 20 tail, proven 60 head')
    expect(shape(standing({}), frontier({}))).toBe('frontier: hole 20, hole 20 tail, proven 60 head')
    expect(shape(standing(done), frontier({ phase: 'forward', tailComplete: true }))).toBe('frontier: proven 100 head')
    expect(
      shape(standing(inflight(1)), frontier({ phase: 'forward', tailComplete: true, pass: { headCursor: 'x' } })),
    ).toBe('frontier: proven 85, filling 15 head')
    for (const other of [
      'null',
      '"forward"',
      '{"phase":"forward"}',
      '{"phase":"delta","anchors":"","tailComplete":true}',
      'not JSON',
    ])
      expect(parseFrontier(other), other).toBeNull()
  })
})
