import { describe, expect, test } from 'vitest'
import type { TrackSource } from '../../../src/worker/track-options.ts'
import { describeSource, runSourceCase } from '../../../src/testing/describe-source.ts'
import { sourceCases } from '../../../src/testing/source-cases/cases.ts'
import type { SourceHarness } from '../../../src/testing/source-cases/harness.ts'
import { openLedger, type Mistakes } from './ledger.ts'
import { openShelves, type PartitionMistakes } from './shelves.ts'

describeSource("a small ledger's", () => openLedger(), { runner: { describe, test } })
describeSource("a library's shelves, listed", () => openShelves('replace'), { runner: { describe, test } })
describeSource("a library's shelves, followed", () => openShelves('incremental'), { runner: { describe, test } })

/** A source that is wrong in one way, and the cases that must detect it; by the beginning of their names. */
const broken: ReadonlyArray<readonly [keyof Mistakes, readonly string[]]> = [
  ['timeAlone', ['the delta misses no record when more']],
  ['noLag', ['a write between two pages of a delta']],
  ['ownClock', ['a write between two pages of a delta']],
  ['noAnchor', ['a write between two pages of a listing']],
  ['deafToDeletes', ['deleted records are removed by the delta']],
  ['firstPageOnly', ['every record lands unchanged']],
  ['byOffset', ['a write between two pages of a listing']],
  ['failureIsEmpty', ['a failed response is never']],
  ['emptyIsEnd', ['a wrong response with status 200']],
  ['emptyMoves', ['a wrong response with status 200']],
  ['stamped', ['an unchanged system']],
  ['remembers', ['new and changed records']],
]

const CRASH = 'a crash in the middle'
const brokenPartitions: ReadonlyArray<readonly [keyof PartitionMistakes, 'replace' | 'incremental', string]> = [
  ['onePage', 'replace', CRASH],
  ['onePage', 'incremental', CRASH],
  ['forgetsPage', 'replace', CRASH],
  ['endsEarly', 'replace', 'rows are deleted only after'],
  ['lateTidemark', 'incremental', 'the tidemark is true'],
  ['remembersList', 'replace', 'a partition that is added'],
  ['remembersList', 'incremental', 'a partition that is added'],
  ['keepsVanished', 'replace', 'a partition that vanishes'],
]

describe('the source contract', () => {
  test.each(brokenPartitions)('partitions with the mistake %s are detected (%s)', async (mistake, mode, name) => {
    const [sourceCase, ...others] = sourceCases.filter((one) => one.name.startsWith(name))
    expect(others).toEqual([])
    await expect(runSourceCase(sourceCase!, () => openShelves(mode, { [mistake]: true }))).rejects.toMatchObject({
      code: 'ERR_ASSERTION',
    })
  })

  test.each(broken)('a source with the mistake %s is detected', async (mistake, caughtBy) => {
    for (const name of caughtBy) {
      const [sourceCase, ...others] = sourceCases.filter((one) => one.name.startsWith(name))
      expect(others).toEqual([])
      await expect(
        runSourceCase(sourceCase!, () => openLedger({ [mistake]: true })),
        name,
      ).rejects.toMatchObject({ code: 'ERR_ASSERTION' })
    }
  })

  test('unsupported cases are skipped, with the reason', async () => {
    const listing = (): SourceHarness => {
      const { source, remove: _, ...rest } = openLedger()
      return { ...rest, source: { mode: 'replace', execute: (source as TrackSource).backfill } }
    }
    for (const sourceCase of sourceCases) {
      const { needs } = sourceCase
      const reason = await runSourceCase(sourceCase, listing)
      if (needs.some((need) => /partitions|Partitions/.test(need))) expect(reason).toMatch(/no `partitions`|are fixed/)
      else if (needs.includes('delta')) expect(reason).toBe('the source has no delta')
      else if (needs.includes('deletes')) expect(reason).toContain('remove')
      else expect(reason).toBeNull()
    }
  })
})
