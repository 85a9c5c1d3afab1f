import { describe, expect, test } from 'vitest'
import type { TrackSource } from '../../../src/worker/track-options.ts'
import { describeSource, runSourceCase } from '../../../src/testing/describe-source.ts'
import { sourceCases } from '../../../src/testing/source-cases/cases.ts'
import type { SourceHarness } from '../../../src/testing/source-cases/harness.ts'
import { openLedger, type Mistakes } from './ledger.ts'

describeSource('a small ledger\'s', () => openLedger(), { runner: { describe, test } })

/** A source that is wrong in one way, and the cases that must tell; by the beginning of their names. */
const broken: ReadonlyArray<readonly [keyof Mistakes, readonly string[]]> = [
  ['timeAlone', ['of more records of one moment']],
  ['noLag', ['what is written between two pages of a delta']],
  ['ownClock', ['what is written between two pages of a delta']],
  ['noAnchor', ['what is written between two pages of a listing']],
  ['deafToDeletes', ['what is gone goes with the delta']],
  ['firstPageOnly', ['everything that is there']],
  ['byOffset', ['what is written between two pages of a listing']],
  ['failureIsEmpty', ['no answer that went wrong']],
  ['emptyIsEnd', ['a wrong answer with status 200']],
  ['emptyMoves', ['a wrong answer with status 200']],
  ['stamped', ['where nothing changed']],
  ['remembers', ['what is new and what changed']],
]

describe('the promise of a source', () => {
  test.each(broken)('a source with the mistake %s is found out', async (mistake, caughtBy) => {
    for (const name of caughtBy) {
      const [sourceCase, ...others] = sourceCases.filter((one) => one.name.startsWith(name))
      expect(others).toEqual([])
      await expect(runSourceCase(sourceCase!, () => openLedger({ [mistake]: true })), name).rejects.toMatchObject({ code: 'ERR_ASSERTION' })
    }
  })

  test('what a source cannot do is not asked of it, and the reason is told', async () => {
    const listing = (): SourceHarness => {
      const { source, remove: _, ...rest } = openLedger()
      return { ...rest, source: { mode: 'replace', execute: (source as TrackSource).backfill } }
    }
    for (const sourceCase of sourceCases) {
      const { needs } = sourceCase
      const reason = await runSourceCase(sourceCase, listing)
      if (needs.includes('delta')) expect(reason).toBe('the source has no delta')
      else if (needs.includes('deletes')) expect(reason).toContain('remove')
      else expect(reason).toBeNull()
    }
  })
})
