import { describe, expect, test } from 'vitest'
import type { Landing } from '../../src/contract/index.ts'
import {
  resolveLanding,
  type RowStatus,
  type StoredRow,
  type Resolution,
} from '../../src/stores/kit/resolve-landing.ts'
import { exceedsDeleteLimit } from '../../src/stores/kit/plan-landing.ts'

/** The landing's time relative to the row's. `near`: different, and within the tolerance. */
type Order = 'newer' | 'equal' | 'near' | 'older' | 'landing without time' | 'row without time' | 'both without time'
/** The landing's read relative to the row's write: by the same sync, after it, or during it. */
type Read = 'own' | 'after' | 'during'
type What = 'same content' | 'other content' | 'delete'
type Cells = Readonly<Record<Order, readonly [own: Resolution, after: Resolution, during: Resolution]>>

const all = (verdict: Resolution): readonly [Resolution, Resolution, Resolution] => [verdict, verdict, verdict]
/** Times do not decide, so the order of reading must; if it cannot either, the result is an overlap. */
const byRead = (verdict: Resolution): readonly [Resolution, Resolution, Resolution] => [verdict, verdict, 'overlap']

/** A sweep has no time of its own: only a later read can restore a row. */
const listedAgain: Cells = {
  newer: byRead('create'),
  equal: byRead('create'),
  near: byRead('create'),
  older: all('stale'),
  'landing without time': byRead('create'),
  'row without time': byRead('create'),
  'both without time': byRead('create'),
}
/** A version as old as the deleted one is that version again. */
const toldAgain: Cells = { ...listedAgain, newer: all('create'), equal: all('stale') }

const TABLE: Readonly<Record<RowStatus, Readonly<Record<What, Cells>>>> = {
  live: {
    'same content': {
      newer: all('touch'),
      equal: all('same'),
      near: all('same'),
      older: all('same'),
      'landing without time': all('same'),
      'row without time': all('touch'),
      'both without time': all('same'),
    },
    'other content': {
      newer: all('update'),
      equal: byRead('update'),
      near: byRead('update'),
      older: all('stale'),
      'landing without time': byRead('update'),
      'row without time': byRead('update'),
      'both without time': byRead('update'),
    },
    delete: {
      newer: all('delete'),
      equal: all('delete'),
      near: all('delete'),
      older: all('stale'),
      'landing without time': byRead('delete'),
      'row without time': byRead('delete'),
      'both without time': byRead('delete'),
    },
  },
  deleted: {
    'same content': toldAgain,
    'other content': toldAgain,
    delete: {
      newer: all('touch'),
      equal: all('gone'),
      near: all('gone'),
      older: all('gone'),
      'landing without time': all('gone'),
      'row without time': all('gone'),
      'both without time': all('gone'),
    },
  },
  swept: {
    'same content': listedAgain,
    'other content': listedAgain,
    delete: {
      newer: all('touch'),
      equal: all('touch'),
      near: all('touch'),
      older: all('gone'),
      'landing without time': all('touch'),
      'row without time': all('touch'),
      'both without time': all('touch'),
    },
  },
}

const at = (second: number): string => `2026-01-01T00:00:${String(second).padStart(2, '0')}.000000Z`
const TIMES: Readonly<Record<Order, readonly [landing: string | null, row: string | null]>> = {
  newer: [at(30), at(10)],
  equal: [at(10), at(10)],
  near: [at(11), at(10)],
  older: [at(10), at(30)],
  'landing without time': [null, at(10)],
  'row without time': [at(10), null],
  'both without time': [null, null],
}
const READS: Readonly<Record<Read, { writer: number; readFrom: number }>> = {
  own: { writer: 1, readFrom: 0 },
  after: { writer: 2, readFrom: 7 },
  during: { writer: 2, readFrom: 6 },
}

function landingOf(what: What, upstreamAt: string | null): Landing {
  if (what === 'delete') return { type: 'delete', database: 'd', key: 'k', upstreamAt }
  return {
    type: 'upsert',
    database: 'd',
    key: 'k',
    text: '{}',
    hash: what === 'same content' ? 'h' : 'other',
    cursor: null,
    upstreamAt,
  }
}

describe('invariant 6: the resolution of a landing', () => {
  const cells = (Object.keys(TABLE) as RowStatus[]).flatMap((status) =>
    (Object.keys(TABLE[status]) as What[]).flatMap((what) =>
      (Object.keys(TIMES) as Order[]).flatMap((order) =>
        (Object.keys(READS) as Read[]).map((read, column) => ({
          status,
          what,
          order,
          read,
          verdict: TABLE[status][what][order][column]!,
        })),
      ),
    ),
  )

  test.each(cells)(
    'XB14 $what on a $status row, time $order, read $read: $verdict',
    ({ status, what, order, read, verdict }) => {
      const [landingAt, rowAt] = TIMES[order]
      const row: StoredRow = {
        sequence: 7,
        status,
        hash: status === 'live' ? 'h' : null,
        upstreamAt: rowAt,
        writer: 1,
        owner: 1,
        contestedBy: null,
      }
      const judged = (isListing: boolean): Resolution =>
        resolveLanding(landingOf(what, landingAt), row, { ...READS[read], upstreamToleranceMs: 5_000, isListing })
      expect(judged(false)).toBe(verdict)
      // A listing requested after the row was committed is the later read: it is not refused for its time alone.
      expect(judged(true)).toBe(verdict === 'stale' && read === 'after' ? 'contest' : verdict)
    },
  )

  const contents = (['own', 'after', 'during'] as const).flatMap((read) =>
    (['event', 'read'] as const).flatMap((asOf) =>
      (['newer', 'equal', 'older', 'landing without time', 'row without time'] as const).map((order) => ({
        read,
        asOf,
        order,
      })),
    ),
  )

  test.each(contents)(
    'a record as of its $asOf on the row of another sync, time $order, read $read',
    ({ read, asOf, order }) => {
      const [landingAt, rowAt] = TIMES[order]
      const on = (status: RowStatus): Resolution => {
        const row: StoredRow = {
          sequence: 7,
          status,
          hash: status === 'live' ? 'h' : null,
          upstreamAt: rowAt,
          writer: 1,
          owner: 1,
          contestedBy: null,
        }
        const landing = landingOf('other content', landingAt) as Extract<Landing, { type: 'upsert' }>
        return resolveLanding({ ...landing, asOf }, row, {
          ...READS[read],
          upstreamToleranceMs: 5_000,
          isListing: false,
        })
      }
      // An event of a log may be older than any row of another sync, and a read older than one that was committed
      // meanwhile.
      const isUnordered = read === 'during' || (asOf === 'event' && read === 'after')
      if (isUnordered) expect([on('live'), on('swept')]).toEqual(['overlap', 'overlap'])
      // A read that began after the row was committed is later than the row.
      else if (asOf === 'read') expect([on('live'), on('swept')]).toEqual(['update', 'create'])
      // The events of one sync are ordered by their times.
      else expect([on('live'), on('swept')]).toEqual([order === 'older' ? 'stale' : 'update', 'create'])
      // A deletion is final: neither is requested again.
      if (order === 'older' || order === 'equal') expect(on('deleted')).toBe('stale')
    },
  )

  test('an unknown key is created, or gets a tombstone so that an older version stays out', () => {
    for (const [landingAt] of Object.values(TIMES)) {
      for (const read of Object.values(READS)) {
        expect(
          resolveLanding(landingOf('other content', landingAt), undefined, {
            ...read,
            upstreamToleranceMs: 0,
            isListing: true,
          }),
        ).toBe('create')
        expect(
          resolveLanding(landingOf('delete', landingAt), undefined, {
            ...read,
            upstreamToleranceMs: 0,
            isListing: true,
          }),
        ).toBe('tombstone')
      }
    }
  })
})

describe('invariant 11: the delete limit', () => {
  const half = { maxShare: 0.5, allowEmpty: false }
  test.each<[number, number, { maxShare: number; allowEmpty: boolean }, boolean]>([
    [10, 0, half, false],
    [0, 0, half, false],
    [10, 5, half, false],
    [10, 6, half, true],
    [10, 10, half, true],
    [1, 1, half, true],
    [3, 2, half, true],
    [3, 1, half, false],
    [10, 10, { maxShare: 1, allowEmpty: false }, true],
    [10, 9, { maxShare: 1, allowEmpty: false }, false],
    [10, 10, { maxShare: 0, allowEmpty: true }, false],
    [10, 6, { maxShare: 0.5, allowEmpty: true }, true],
    [10, 1, { maxShare: 0, allowEmpty: false }, true],
    [10, 10, { maxShare: 1, allowEmpty: true }, false],
  ])('XE3 XE4 of %i rows %i are missing, with %j: blocked %s', (existed, doomed, sweep, braked) => {
    expect(exceedsDeleteLimit(sweep, existed, doomed)).toBe(braked)
  })
})
