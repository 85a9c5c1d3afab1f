import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { openStore } from '../../../src/stores/open-store.ts'
import { isSyncError, type TimeRange } from '../../../src/contract/index.ts'
import { parseColumnInstant } from '../../../src/sources/sql/column-instants.ts'
import { discover, sql, type CursorOptions } from '../../../src/sources/sql/source.ts'
import { canonicalizeInstant, instantToMs } from '../../../src/values/instant.ts'
import { required } from '../../../src/values/required.ts'
import { buildPackage, type Build } from '../../process/build.ts'
import { Child } from '../../process/child.ts'
import type { Source, SourceKind } from './servers.ts'
import { DatabaseFixture } from './database-fixture.ts'

/** The cases of every database, on a real server. */
export function describeSqlSource(kind: SourceKind, extra: (source: () => Source) => void): void {
  const here = kind.isHere(inject('postgresUrl'))
  describe.skipIf(!here)(`sql: ${kind.name}`, () => {
    let source: Source
    let tables = 0
    beforeAll(async () => {
      source = await kind.open(inject('postgresUrl'))
    })
    afterAll(async () => {
      await source?.close()
    })

    /** A table of its own, with an id, a name and a moment of the last change. */
    async function makeTable(rows: readonly [id: number, name: string, secondsAgo: number][]): Promise<string> {
      const name = `items${++tables}`
      await source.exec(
        `create table ${name} (id integer not null primary key, name varchar(50), updated_at ${kind.stampType} not null)`,
      )
      const now = Math.floor(Date.now() / 1_000) * 1_000
      for (const [id, text, ago] of rows)
        await source.exec(`insert into ${name} values (${id}, '${text}', ${momentOf(kind, now - ago * 1_000)})`)
      return name
    }
    /** The time of the first row, which the table got when it was made. */
    const firstMoment = async (table: string): Promise<number> => {
      const { backfill } = sql({ url: source.url }).table(table, { cursor: 'updated_at', lagMs: 0, pageSize: 1 })
      const [first] = (await backfill(undefined, contextOf())).changes
      const instant = first?.type === 'upsert' ? parseColumnInstant(String(first.cursor)) : null
      return instantToMs(required(instant, 'the time of the first row'))
    }
    const stageOf = async (table: string, options: Partial<CursorOptions> = {}): Promise<DatabaseFixture> => {
      const stream = sql({ url: source.url }).table(table, { cursor: 'updated_at', lagMs: 0, ...options })
      return (await DatabaseFixture.open()).track('items', stream)
    }

    test('R1 R5 R13 R15 R16 R46 a cycle reads what is newer than its position, nothing older, and leaves the greatest cursor', async () => {
      const table = await makeTable([
        [1, 'a', 100],
        [2, 'b', 50],
      ])
      const stage = await stageOf(table)
      expect((await stage.complete('items')).counts).toMatchObject({ created: 2 })
      const first = await stage.state('items')
      expect(first).toEqual({
        cursorField: 'updated_at',
        cursorValue: String((await stage.rows('items'))['2'].updated_at),
      })
      // Changed without the cursor: a reader of older data would see it.
      await source.exec(`update ${table} set name = 'unseen' where id = 1`)
      await source.exec(`insert into ${table} values (3, 'c', ${kind.ago(10)})`)
      expect((await stage.complete('items')).counts).toMatchObject({ created: 1, updated: 0 })
      const rows = await stage.rows('items')
      expect(Object.values(rows).map(({ name }) => name)).toEqual(['a', 'b', 'c'])
      expect((await stage.state('items')).cursorValue).toBe(rows['3'].updated_at)
      // And a cycle without news stays where it is.
      expect((await stage.complete('items')).counts).toMatchObject({ created: 0, unchanged: 1 })
      expect((await stage.state('items')).cursorValue).toBe(rows['3'].updated_at)
      await stage.close()
    })

    test('F4 R2 R29 R30 R47 rows that share a timestamp are neither lost at a border of pages nor between cycles', async () => {
      const table = await makeTable(
        Array.from(
          { length: 9 },
          (_, index) => [9 - index, `n${index}`, 100 - Math.floor(index / 4)] as [number, string, number],
        ),
      )
      for (const pageSize of [1, 2, 3, 4, 9]) {
        const stage = await stageOf(table, { pageSize })
        const { counts, pages } = await stage.complete('items')
        expect({ pageSize, ...counts, pages }).toMatchObject({
          created: 9,
          unchanged: 0,
          pages: Math.floor(9 / pageSize) + 1,
        })
        await stage.close()
      }
      const stage = await stageOf(table)
      await stage.complete('items')
      const { cursorValue } = await stage.state('items')
      // With the timestamp at which the last cycle ended, and a smaller key.
      await source.exec(`insert into ${table} select 0, 'late', max(updated_at) from ${table}`)
      expect((await stage.complete('items')).counts).toMatchObject({ created: 1 })
      expect((await stage.state('items')).cursorValue).toBe(cursorValue)
      await stage.close()
    })

    test('R37 R49 with a safety window every cycle reads so much again, without one it does not', async () => {
      const table = await makeTable([[1, 'a', 600]])
      const [plain, careful] = [await stageOf(table), await stageOf(table, { safetyWindow: 'PT5M' })]
      for (const stage of [plain, careful]) await stage.complete('items')
      const { cursorValue } = await careful.state('items')
      await source.exec(
        `insert into ${table} values (2, 'behind', ${kind.ago(840)}), (3, 'too far behind', ${kind.ago(1_200)})`,
      )
      expect((await plain.complete('items')).counts).toMatchObject({ created: 0 })
      expect((await careful.complete('items')).counts).toMatchObject({ created: 1, unchanged: 1 })
      // Rows that are read again do not move the cursor back, even if there are no others.
      await source.exec(`delete from ${table} where id = 1`)
      expect((await careful.complete('items')).counts).toMatchObject({ unchanged: 1 })
      expect((await careful.state('items')).cursorValue).toBe(cursorValue)
      for (const stage of [plain, careful]) await stage.close()
      expect(() => sql({ url: source.url }).table(table, { cursor: 'updated_at', safetyWindow: '5m' })).toThrow(/PT5M/)
    })

    test('R37 what is younger than the lag waits, and a page asked later in the cycle reads no further than the first', async () => {
      const table = await makeTable([
        [1, 'a', 100],
        [2, 'b', 90],
      ])
      await source.exec(
        `insert into ${table} values (3, 'young', ${kind.ago(5)}), (4, 'tomorrow', ${kind.ago(-86_400)})`,
      )
      const stage = await stageOf(table, { lagMs: 30_000 })
      expect((await stage.complete('items')).counts).toMatchObject({ created: 2 })
      await stage.close()

      const { delta } = sql({ url: source.url }).table(table, { cursor: 'updated_at', lagMs: 0, pageSize: 1 })
      const first = await delta(undefined, contextOf())
      await source.exec(`insert into ${table} values (5, 'while it is read', ${kind.ago(-1)})`)
      const seen = [...first.changes]
      for (let page = first; page.hasMore;) {
        page = await delta(page.nextState, contextOf())
        seen.push(...page.changes)
      }
      expect(seen.map(({ key }) => key)).toEqual(['1', '2', '3'])
    })

    test('R3 RX2 without a cursor all of it is read by key, and what is gone is swept', async () => {
      const name = `pairs${++tables}`
      await source.exec(
        `create table ${name} (a varchar(20) not null, b integer not null, note varchar(20), primary key (a, b))`,
      )
      await source.exec(
        `insert into ${name} values ('x', 1, 'p'), ('x', 2, 'q'), ('y', 1, 'r'), ('Y2', 1, 's'), ('z', 10, 't'), ('z', 9, 'u')`,
      )
      const stage = (await DatabaseFixture.open()).sync(
        'pairs',
        'replace',
        sql({ url: source.url }).listing(name, { pageSize: 2 }).execute,
      )
      expect((await stage.complete('pairs')).counts).toMatchObject({ created: 6, swept: 0 })
      expect(await stage.rows('pairs')).toMatchObject({ '["x","2"]': { note: 'q' }, '["z","10"]': { note: 't' } })
      await source.exec(`delete from ${name} where b = 10`)
      expect((await stage.complete('pairs')).counts).toMatchObject({ created: 0, swept: 1, unchanged: 5 })
      await stage.close()
    })

    test('R12 a sync without state begins at `since`', async () => {
      const table = await makeTable([
        [1, 'a', 1_000],
        [2, 'b', 50],
      ])
      const stage = await stageOf(table, {
        since: new Date(Date.now() - 500_000).toISOString().slice(0, 19).replace('T', ' '),
      })
      expect((await stage.complete('items')).counts).toMatchObject({ created: 1 })
      await stage.close()
    })

    test('the start date limits the backfill and the first delta, and a lookup knows no earlier row', async () => {
      const table = await makeTable([
        [1, 'before', 100_000],
        [2, 'at', 50_000],
        [3, 'after', 100],
      ])
      const at = new Date(Math.floor(Date.now() / 1_000) * 1_000 - 50_000_000).toISOString()
      const stream = sql({ url: source.url, since: at }).table(table, { cursor: 'updated_at', lagMs: 0, pageSize: 1 })
      const stage = (await DatabaseFixture.open()).track('items', stream)
      expect((await stage.complete('items-backfill')).counts).toMatchObject({ created: 2 })
      expect((await stage.complete('items')).counts).toMatchObject({ created: 0 })
      expect(await stream.lookup('1', contextOf())).toBeNull()
      expect(await stream.lookup('2', contextOf())).toMatchObject({ key: '2' })
      await stage.close()
      const alone = (await DatabaseFixture.open()).sync('items', 'incremental', stream.delta)
      expect((await alone.complete('items')).counts).toMatchObject({ created: 2 })
      await alone.close()
    })

    test('a start date that is set later sweeps no older row without a confirmation', async () => {
      const table = await makeTable([
        [1, 'before', 100_000],
        [2, 'after', 100],
      ])
      const stage = await DatabaseFixture.open()
      const plain = sql({ url: source.url }).listing(table, { cursor: 'updated_at' })
      const since = new Date(Date.now() - 50_000_000).toISOString()
      const limited = sql({ url: source.url }).listing(table, { cursor: 'updated_at', since })
      let current = plain.execute
      stage.sync('items', 'replace', (state, context) => current(state, context))
      await stage.complete('items')
      current = limited.execute
      expect(await stage.run('items')).toMatchObject({ stopReason: 'blocked', error: { code: 'SCOPE_CHANGED' } })
      expect(Object.keys(await stage.rows('items'))).toEqual(['1', '2'])
      expect((await stage.complete('items', { allowDeletes: true })).counts).toMatchObject({ swept: 1 })
      await stage.close()
    })

    test('a range is read page by page, with its start and without its end', async () => {
      const table = await makeTable([
        [1, 'before', 5_000],
        [2, 'at the start', 4_000],
        [3, 'inside', 3_000],
        [4, 'also inside', 3_000],
        [5, 'at the end', 2_000],
        [6, 'after', 1_000],
      ])
      const { backfill } = sql({ url: source.url }).table(table, { cursor: 'updated_at', lagMs: 0, pageSize: 2 })
      const read = async (range: TimeRange): Promise<string[]> => {
        const execute = required(backfill.range, 'range')(range)
        const keys: string[] = []
        for (let state: unknown; ;) {
          const page = await execute(state, contextOf())
          keys.push(...page.changes.map(({ key }) => String(key)))
          if (!page.hasMore) return keys
          state = page.nextState
        }
      }
      const base = await firstMoment(table)
      const time = (ago: number): string =>
        canonicalizeInstant(new Date(base + (5_000 - ago) * 1_000).toISOString()) ?? ''
      expect(await read({ from: time(4_000), to: time(2_000) })).toEqual(['2', '3', '4'])
      expect(await read({ from: time(3_500) })).toEqual(['3', '4', '5', '6'])
      expect(await read({ to: time(2_999) })).toEqual(['1', '2', '3', '4'])
      expect(await read({ from: time(500) })).toEqual([])
    })

    test('a start date or a range that does not fit the table is refused', async () => {
      const table = await makeTable([[1, 'a', 100]])
      const shop = sql({ url: source.url, since: '2024-01-01' })
      expect(() => shop.listing(table)).toThrow(/`since` needs a `cursor`/)
      expect(() => sql({ url: source.url, since: 'soon' })).toThrow(/`since` is "soon"/)
      await expect(shop.table(table, { cursor: 'id' }).backfill(undefined, contextOf())).rejects.toThrow(
        /the cursor "id" is an integer/,
      )
      const byId = sql({ url: source.url }).table(table, { cursor: 'id' })
      await expect(byId.backfill.range?.({ from: '2024-01-01' })(undefined, contextOf())).rejects.toMatchObject({
        code: 'RANGE_UNSUPPORTED',
      })
      const from2 = sql({ url: source.url }).table(table, { cursor: 'id', since: '2', lagMs: 0 })
      expect((await from2.backfill(undefined, contextOf())).changes).toEqual([])
      expect(sql({ url: source.url }).listing(table).execute.range).toBeUndefined()
    })

    test('R24 R47 by an integer: everything once, then what is above; the greatest is kept until nothing below it can appear', async () => {
      const table = await makeTable([
        [1, 'a', 0],
        [3, 'b', 0],
      ])
      const { delta } = sql({ url: source.url }).table(table, { cursor: 'id', lagMs: 0, pageSize: 1 })
      const stage = (await DatabaseFixture.open()).sync('ids', 'incremental', delta)
      expect((await stage.complete('ids')).counts).toMatchObject({ created: 2, unchanged: 0 })
      expect(await stage.state('ids')).toEqual({ cursorField: 'id', cursorValue: '3' })
      await source.exec(`insert into ${table} values (5, 'c', ${kind.now}), (4, 'd', ${kind.now})`)
      expect((await stage.complete('ids')).counts).toMatchObject({ created: 2, unchanged: 0 })
      expect(await stage.state('ids')).toMatchObject({ cursorValue: '3', mark: { value: '5' } })
      await stage.complete('ids')
      expect(await stage.state('ids')).toMatchObject({ cursorValue: '5' })
      await stage.close()

      const strict = (await DatabaseFixture.open()).sync(
        'ids',
        'incremental',
        sql({ url: source.url }).table(table, { cursor: 'id', strict: true, pageSize: 2 }).delta,
      )
      await strict.complete('ids')
      expect(await strict.state('ids')).toEqual({ cursorField: 'id', cursorValue: '5' })
      await strict.close()
    })

    test('a row that says it is gone is deleted, and the pair shares one table', async () => {
      const table = await makeTable([
        [1, 'a', 100],
        [2, 'b', 50],
      ])
      await source.exec(`alter table ${table} add column gone integer`)
      const stage = await stageOf(table, { deleted: 'gone' })
      await stage.complete('items-backfill')
      await source.exec(`update ${table} set gone = 1, updated_at = ${kind.now} where id = 1`)
      expect((await stage.complete('items')).counts).toMatchObject({ deleted: 1 })
      expect(Object.keys(await stage.rows('items'))).toEqual(['2'])
      await stage.close()
    })

    test('R2 R3 a table, a column or a position that does not fit is refused with its name', async () => {
      const table = await makeTable([[1, 'a', 100]])
      await source.exec(
        `create view ${table}_twice as select * from ${table} union all select * from ${table}; create table ${table}_bare (name varchar(20))`,
      )
      const { table: by, listing } = sql({ url: source.url })
      const refusals: [() => Promise<unknown>, string, RegExp][] = [
        [() => listing('no_such_table').execute(undefined, contextOf()), 'SOURCE_NOT_FOUND', /no_such_table/],
        [() => by(table, { cursor: 'nope' }).delta(undefined, contextOf()), 'SOURCE_NOT_FOUND', /"nope"/],
        [
          () => by(table, { cursor: 'name' }).delta(undefined, contextOf()),
          'SYNC_INVALID',
          kind.name === 'sqlite' ? /./ : /"name".*listing/,
        ],
        [() => listing(`${table}_bare`).execute(undefined, contextOf()), 'SYNC_INVALID', /no primary key/],
        [
          () => listing(`${table}_bare`, { key: ['name'] }).execute(undefined, contextOf()),
          'SYNC_INVALID',
          /is nullable/,
        ],
        [
          () => listing(`${table}_twice`, { key: ['id'], pageSize: 1 }).execute(undefined, contextOf()),
          'SOURCE_INVALID',
          /same "id"/,
        ],
        [
          () => by(table, { cursor: 'updated_at', columns: ['id', 'name'] }).delta(undefined, contextOf()),
          'SYNC_INVALID',
          /omits "updated_at"/,
        ],
        [
          () => by(table, { cursor: 'updated_at' }).delta({ cursorField: 'other', cursorValue: '1' }, contextOf()),
          'CURSOR_REJECTED',
          /another column/,
        ],
        [
          () =>
            by(table, { cursor: 'updated_at' }).delta(
              { cursorField: 'updated_at', cursorValue: 7 as never },
              contextOf(),
            ),
          'CURSOR_REJECTED',
          /cursorValue/,
        ],
        [() => listing(table).execute({ after: ['1', '2'] }, contextOf()), 'CURSOR_REJECTED', /after/],
        [() => listing('a.b.c').execute(undefined, contextOf()), 'SYNC_INVALID', /schema\.table/],
      ]
      for (const [ask, code, message] of refusals) {
        if (kind.name === 'sqlite' && String(message) === '/./') continue
        const error = await ask().then(
          () => null,
          (thrown: unknown) => thrown,
        )
        expect(isSyncError(error) ? { code: error.code, message: error.message } : error, String(message)).toEqual({
          code,
          message: expect.stringMatching(message),
        })
      }
    })

    test('RX2 what there is, with its key and what could be its cursor', async () => {
      const table = await makeTable([[1, 'a', 100]])
      const streams = await discover({ url: source.url })
      const found = streams.find(({ id }) => id.endsWith(table))
      expect(found).toMatchObject({ key: ['id'], cursor: 'updated_at', candidates: ['id', 'updated_at'] })
      await source.exec(`create table ${table}_plain (code varchar(5))`)
      expect((await discover({ url: source.url })).find(({ id }) => id.endsWith(`${table}_plain`))).toMatchObject({
        key: [],
        candidates: [],
      })
    })

    describe('R50 killed', () => {
      let build: Build
      beforeAll(async () => {
        build = await buildPackage()
      })
      afterAll(() => build.remove())

      test('R17 R21 R34 R48 R50 a reader killed inside a cycle leaves the checkpoint; the next one ends the cycle, and nothing lands twice', async () => {
        const table = await makeTable([])
        const values = Array.from(
          { length: 40 },
          (_, index) =>
            `(${index + 1}, 'n${index}', ${momentOf(kind, Date.now() - 60_000 + Math.floor(index / 7) * 1_000)})`,
        )
        await source.exec(`insert into ${table} values ${values.join(', ')}`)
        const folder = mkdtempSync(join(tmpdir(), 'tidemark-sql-kill-'))
        const url = `sqlite:${join(folder, 'store.db')}`
        const input = { url, source: source.url, table, pageSize: 3 }
        try {
          const victim = new Child(build, 'run-sql.mjs', { input: { ...input, holdAt: 6 } })
          await victim.until('landed', (said) => said['page'] === 4)
          expect((await victim.kill()).signal).toBe('SIGKILL')
          const look = async () => {
            const store = await openStore(url)
            try {
              const { committed, inflight } = await store.readCheckpoint({ worker: 'office', sync: 'items' })
              return { committed, pages: inflight?.page ?? null, feed: await store.changes({ after: 0, limit: 1_000 }) }
            } finally {
              await store.close()
            }
          }
          const dead = await look()
          expect(dead).toMatchObject({ committed: null })
          expect(dead.pages).toBeGreaterThanOrEqual(4)

          const heir = await new Child(build, 'run-sql.mjs', { input }).ended
          expect(heir.said.at(-1)).toMatchObject({ event: 'result', stopReason: 'complete', resumed: true })
          const done = await look()
          expect(done.feed.map(({ key }) => Number(key)).toSorted((a, b) => a - b)).toEqual(
            Array.from({ length: 40 }, (_, index) => index + 1),
          )
          expect(JSON.parse(done.committed!)).toMatchObject({ cursorField: 'updated_at' })

          // One more full incremental cycle, by yet another process.
          await source.exec(`update ${table} set name = 'again', updated_at = ${kind.now} where id = 7`)
          const third = await new Child(build, 'run-sql.mjs', { input }).ended
          expect(third.said.at(-1)).toMatchObject({
            stopReason: 'complete',
            resumed: false,
            counts: { created: 0, updated: 1 },
          })
        } finally {
          rmSync(folder, { recursive: true, force: true })
        }
      })
    })

    extra(() => source)
  })
}

export function contextOf(): any {
  const controller = new AbortController()
  return {
    signal: controller.signal,
    secrets: { get: (name: string) => name },
    cycle: { id: 1, mode: 'incremental', startedAt: Date.now(), page: 1 },
    clock: { now: () => Date.now(), sleep: (ms: number) => new Promise((resolve) => setTimeout(resolve, ms)) },
    log: { debug() {}, info() {}, warn() {}, error() {} },
  }
}

function momentOf({ name }: SourceKind, ms: number): string {
  const text = new Date(ms).toISOString().slice(0, 23).replace('T', ' ')
  return name === 'postgres' ? `'${text}+00'` : `'${text}'`
}
