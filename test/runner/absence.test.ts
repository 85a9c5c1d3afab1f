import { expect, test } from 'vitest'
import {
  explainAbsence,
  type AbsenceFacts,
  type SyncProgress,
  type SourceLookupResult,
} from '../../src/runner/absence.ts'
import type { LogEntry, QuarantineEntry } from '../../src/contract/index.ts'

const CHANGED = '2026-01-31T12:00:00.000000Z'
const at = (text: string): number => Date.parse(text)
const backfill: SyncProgress = {
  sync: 'people-backfill',
  mode: 'replace',
  role: 'backfill',
  tidemark: null,
  paused: false,
  unfinished: null,
  lastComplete: { cycle: 4, startedAt: at('2026-01-31T11:00:00Z') },
}
const delta: SyncProgress = {
  ...backfill,
  sync: 'people',
  mode: 'incremental',
  role: 'delta',
  tidemark: '2026-01-31T11:59:00.000000Z',
  lastComplete: { cycle: 9, startedAt: at('2026-01-31T13:00:00Z') },
}
const HAS: SourceLookupResult = { kind: 'has', sync: 'people', updatedAt: CHANGED }
const HAS_NOT: SourceLookupResult = { kind: 'has_not', sync: 'people' }
const UNASKED: SourceLookupResult = { kind: 'unasked', reason: 'it does not support lookups of single records.' }
const gone = {
  sequence: 8,
  action: 'deleted',
  sync: 'people',
  worker: 'w',
  cycle: 3,
  page: 2,
  committedAt: 100,
} as LogEntry
const refused = {
  sync: 'people',
  cycle: 5,
  page: 1,
  code: 'RECORD_INVALID',
  message: 'no name',
  at: 200,
} as QuarantineEntry

function judged(facts: Partial<AbsenceFacts>): [string, string, unknown] {
  const { verdict, advice, should } = explainAbsence({
    database: 'people',
    key: 'p1',
    exists: false,
    lastEntry: null,
    lastEntryMode: null,
    quarantined: null,
    progress: [delta, backfill],
    source: HAS_NOT,
    ...facts,
  })
  return [verdict, advice, should]
}

test.each<[string, Partial<AbsenceFacts>, string, RegExp, unknown?]>([
  ['it is there', { exists: true, quarantined: refused }, 'present', /tidemark why people p1/],
  ['it was refused', { quarantined: refused }, 'quarantined', /tidemark run people --backfill/],
  ['it was refused after it was deleted', { quarantined: refused, lastEntry: gone }, 'quarantined', /Fix the record/],
  [
    'it was refused long ago, and deleted since',
    { quarantined: { ...refused, at: 50 }, lastEntry: gone, lastEntryMode: 'incremental' },
    'deleted',
    /the copy is correct/,
  ],
  [
    'a full reading did not have it, nor has the source',
    { lastEntry: gone, lastEntryMode: 'replace' },
    'swept',
    /the copy is correct/,
  ],
  [
    'a full reading did not have it, and the source has it now',
    { lastEntry: gone, lastEntryMode: 'replace', source: HAS },
    'swept',
    /tidemark run people --backfill/,
  ],
  [
    'the source said that it was deleted, and cannot be asked',
    { lastEntry: gone, lastEntryMode: 'incremental', source: UNASKED },
    'deleted',
    /Check the source/,
  ],
  [
    'nothing has been through',
    {
      progress: [
        { ...delta, lastComplete: null },
        { ...backfill, lastComplete: null },
      ],
      source: HAS,
    },
    'never_read',
    /tidemark run people --backfill/,
  ],
  ['it changed after all that was read', { source: HAS }, 'not_yet', /tidemark run people`/],
  [
    'the delta has passed it',
    { source: HAS, progress: [{ ...delta, tidemark: CHANGED }, backfill] },
    'left_out',
    /filter/,
    { sync: 'people', cycle: 9 },
  ],
  [
    'a full reading began after it',
    { source: HAS, progress: [delta, { ...backfill, lastComplete: { cycle: 5, startedAt: at(CHANGED) + 1 } }] },
    'left_out',
    /filter/,
    { sync: 'people-backfill', cycle: 5 },
  ],
  [
    'a full reading began at its very moment',
    { source: HAS, progress: [{ ...backfill, lastComplete: { cycle: 5, startedAt: at(CHANGED) } }] },
    'not_yet',
    /tidemark run people --backfill/,
  ],
  [
    'the time of the change is unknown',
    { source: { ...HAS, updatedAt: null } },
    'left_out',
    /filter/,
    { sync: 'people-backfill', cycle: 4 },
  ],
  [
    'a delta whose tidemark is a cursor proves nothing',
    { source: HAS, progress: [{ ...delta, tidemark: 'zzz' }] },
    'not_yet',
    /tidemark run people`/,
  ],
  ['the source has nothing there', {}, 'not_in_source', /spelling of the key/],
  ['the source cannot be asked', { source: UNASKED }, 'unknown', /Check the source/],
])('%s', (_, facts, verdict, advice, should = null) => {
  expect(judged(facts)).toEqual([verdict, expect.stringMatching(advice), should])
})
