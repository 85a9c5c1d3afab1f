import { expect, test } from 'vitest'
import type { Store } from '../../src/contract/index.ts'
import { remove, SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'

export interface CountedStore {
  readonly store: Store
  /** The statements that `act` runs, once per execution. */
  statementsOf(act: () => Promise<unknown>): Promise<string[]>
  /** Parts of the plans of these statements that read more than an index range; empty in the good case. */
  scansOf(statements: readonly string[]): Promise<string[]>
}

const PAGE = 100
/** For a page with deletions and replaced versions. */
const STATEMENTS_MAX = 14

/** A page costs the same work, whatever else the store holds. */
export function describeFeedCost(open: () => Promise<CountedStore>): void {
  test(
    'a page of the feed runs the same statements with 1 and 500 databases, at the head and in the middle, with an empty and a long history',
    { timeout: 300_000 },
    async () => {
      const { store, statementsOf, scansOf } = await open()
      const sync = await SyncDriver.acquire(store)
      const things = (from: number, value: number) =>
        Array.from({ length: 200 }, (_, n) => upsert(`k${String(from + n).padStart(5, '0')}`, { value }))
      const page = (after: number) =>
        statementsOf(async () => {
          const { entries } = await store.feed({ after, limit: PAGE, scanMax: 1_000 })
          expect(entries).toHaveLength(PAGE)
        })
      await sync.cycle(things(0, 0))
      await sync.cycle(things(200, 0))
      // Rows that are not changed later.
      const alone = await page(300)
      expect(alone.length).toBeLessThanOrEqual(STATEMENTS_MAX)

      // Both ends of the log are in `things`; 500 other databases lie between them.
      for (let from = 0; from < 500; from += 100) {
        await sync.cycle(
          Array.from({ length: 100 }, (_, n) => upsert('k', { value: 1 }, { database: `other_${from + n}` })),
        )
      }
      for (let value = 1; value <= 10; value++) await sync.cycle(things(0, value))
      await sync.cycle(Array.from({ length: 50 }, (_, n) => remove(`k${String(n).padStart(5, '0')}`)))
      await sync.cycle(things(1_000, 0))
      const position = await store.headSequence()
      for (const after of [0, 100, 200, 1_000, position - 210, position - 100]) {
        const statements = await page(after)
        expect(
          statements.filter((sql) => /other_\d/.test(sql)),
          `after ${after}`,
        ).toEqual([])
        expect(statements.length, `after ${after}`).toBeLessThanOrEqual(alone.length + 6)
      }
      expect(await page(300)).toEqual(alone)
      expect(await page(position - 100)).toEqual(alone)
      expect(await scansOf([...new Set([...alone, ...(await page(position - 210))])])).toEqual([])

      // A page that is spread over many databases touches those, and none twice.
      const spread = await statementsOf(() => store.feed({ after: 400, limit: 20, scanMax: 1_000 }))
      const touched = spread.flatMap((sql) =>
        [...sql.matchAll(/from "?(?:public\.)?"?(other_\d+)\b/g)].map(([, name]) => name),
      )
      expect(touched).toHaveLength(20)
      expect(new Set(touched).size).toBe(20)
    },
  )
}
