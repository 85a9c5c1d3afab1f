import { describe, expect, test } from 'vitest'
import type { JsonValue } from '../../../src/contract/index.ts'
import { importTapState } from '../../../src/sources/singer/import-state.ts'
import { singer } from '../../../src/sources/singer/source.ts'
import { parseJson } from '../../../src/values/json.ts'

const BOOKMARKS = { issues: { since: '2026-01-31T00:00:00Z' }, commits: { since: '2026-01-30T00:00:00Z' } }

describe('the state of a Singer tap', () => {
  test.each([
    ['as the target stored it', { bookmarks: BOOKMARKS, currently_syncing: 'commits' }],
    ['as a message', { type: 'STATE', value: { bookmarks: BOOKMARKS } }],
    ['as Meltano stored it', { singer_state: { bookmarks: BOOKMARKS } }],
    ['as a message of Meltano', { type: 'STATE', value: { singer_state: { bookmarks: BOOKMARKS } } }],
  ])('%s: only the bookmarks of the stream are kept', (_, document) => {
    expect(importTapState(document, ['issues'])).toEqual({ bookmarks: { issues: BOOKMARKS.issues } })
  })

  test('other members are kept, because a tap may need them', () => {
    const document = { bookmarks: BOOKMARKS, lookup_date: '2026-01-01' }
    expect(importTapState(document, ['issues', 'commits'])).toEqual({ bookmarks: BOOKMARKS, lookup_date: '2026-01-01' })
  })

  test('a state without bookmarks is the tap’s own and is kept as it is', () => {
    expect(importTapState({ last_id: 7 }, ['issues'])).toEqual({ last_id: 7 })
  })

  test('a bookmark may have another name than the stream', () => {
    const document = { bookmarks: { 'public-issues': { version: 1 } } }
    expect(() => importTapState(document, ['issues'])).toThrow(
      'The state has no bookmark of issues. Its bookmarks are public-issues. Name one with --stream.',
    )
    expect(importTapState(document, ['issues'], 'public-issues')).toEqual(document)
  })

  test.each([[null], ['text'], [[1]], [{}], [{ type: 'STATE', value: 5 }]])('%j is refused', (document) => {
    expect(() => importTapState(document as JsonValue, ['issues'])).toThrow(/is not the state of a Singer tap/)
  })

  test('an integer beyond the precision of numbers keeps its digits', () => {
    const document = parseJson('{"bookmarks":{"issues":{"lsn":12345678901234567890}}}')
    const { execute } = singer({ command: 'tap' }).stream('issues')
    expect(execute.importState?.singer?.(document)).toEqual({
      state: { tap: '{"bookmarks":{"issues":{"lsn":12345678901234567890}}}' },
    })
  })

  test('several streams take their bookmarks from one file; a listing takes none', () => {
    const tap = singer({ command: 'tap' })
    const { execute } = tap.streams({ issues: 'issues', other: 'other' })
    expect(execute.importState?.singer?.({ bookmarks: BOOKMARKS })).toEqual({
      state: { tap: { bookmarks: { issues: BOOKMARKS.issues } } },
    })
    expect(tap.listing('issues').execute.importState).toBeUndefined()
  })
})
