import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ColumnChange, JsonObject, LogEntry, Row, SchemaInfo, Store } from '../../../src/contract/index.ts'
import {
  DATABASE,
  readFeed,
  readLiveRows,
  remove,
  readSnapshot,
  START,
  SyncDriver,
  upsert,
} from '../../../src/testing/store-cases/harness.ts'
import { parseJson } from '../../../src/values/json.ts'

/** An empty store of one kind, with SQL access for its user. */
export interface SchemaHarness {
  readonly store: Store
  reopen(): Promise<Store>
  close(): Promise<void>
  sql<Found extends object = Record<string, unknown>>(text: string): Promise<Found[]>
  /** The table as its user names it. */
  readonly table: string
  /** The next transaction fails before it is committed. */
  killNext<T>(body: () => Promise<T>): Promise<T>
}

const BY = { actor: 'ana', reason: 'a test', at: START }
const ROWS = 25

/** Guarantees about columns that change while records land; the same for every store. */
export function describeSchemaChanges(name: string, open: () => Promise<SchemaHarness>, skip = false): void {
  describe.skipIf(skip)(`the columns of a ${name} store`, () => {
    let harness: SchemaHarness
    let store: Store
    beforeEach(async () => {
      harness = await open()
      store = harness.store
    })
    afterEach(() => harness.close())

    test('a value that its column cannot hold is reported once, and stays drift until the column is changed', async () => {
      const driver = await SyncDriver.acquire(store)
      await driver.cycle([upsert('a', { age: 1, at: '2026-01-01T00:00:00Z' })])
      const first = await driver.cycle([upsert('b', { age: 'old', at: '2026-01-01T00:00:00Z' })])
      expect(first.drift).toEqual([
        `${DATABASE}.age: a value of type text does not fit the column of type bigint; it is kept in _extra`,
      ])
      // Another format of an instant is no conflict, and the same conflict is not reported again.
      const second = await driver.cycle([
        upsert('b', { age: 'older', at: '2026-01-01T00:00:00.5Z' }),
        upsert('c', { age: 'x', at: '2026-01-01T00:00:00+00:00' }),
      ])
      expect(second.drift).toBeUndefined()
      const reported = (await store.audit(driver.ref)).filter(({ action }) => action === 'drift')
      expect(reported.map(({ reason }) => reason)).toEqual([first.drift![0]])
      expect(await store.schemaDrift()).toMatchObject([
        {
          database: DATABASE,
          member: 'age',
          kind: 'conflict',
          column: 'age',
          type: 'bigint',
          found: 'text',
          sequence: 2,
        },
      ])
      await change(store, [{ member: 'age', type: 'text' }])
      expect(await store.schemaDrift()).toEqual([])
      expect((await driver.cycle([upsert('d', { age: [1], at: '2026-01-01T00:00:00Z' })])).drift).toHaveLength(1)
    })

    test('a schema change keeps soft-deleted rows, deleted and with their values', async () => {
      const driver = await SyncDriver.acquire(store)
      const deletes = { [DATABASE]: 'soft' } as const
      await driver.cycle(
        Array.from({ length: ROWS }, (_, n) => upsert(`k${n}`, { age: n, name: `n${n}` })),
        { deletes },
      )
      await driver.cycle([upsert('k1', { age: 'old', name: 'x', more: 1 }), remove('k2'), remove('k3')])
      await driver.cycle([remove('k1')])
      const rows = () => harness.sql(`select _key, age, name, _deleted_at from ${harness.table} order by _key`)
      const before = await rows()
      const seen = [await readFeed(store), await readLiveRows(store)]
      const info = (await store.schema(DATABASE))!
      expect([info.deletes, info.deletedRows, info.rows, info.ownColumns]).toEqual(['soft', 3, ROWS, []])
      await change(store, [
        { member: 'age', type: 'text' },
        { member: 'name', column: 'label' },
      ])
      const after = await harness.sql(`select _key, age, label, _deleted_at from ${harness.table} order by _key`)
      expect(after.map((row) => [row['_key'], row['label'], row['_deleted_at']])).toEqual(
        before.map((row) => [row['_key'], row['name'], row['_deleted_at']]),
      )
      expect(after.find((row) => row['_key'] === 'k2')!['age']).toBe('2')
      expect(after.find((row) => row['_key'] === 'k1')!['age']).toBe('old')
      expect([await readFeed(store), await readLiveRows(store)]).toEqual(seen)
      expect((await driver.cycle([upsert('k2', { age: 2, name: 'n2' })])).counts).toMatchObject({ created: 1 })
      expect((await readLiveRows(store)).length).toBe(ROWS - 2)
    })

    test('the schema lists the columns, the fields that wait for one, and the user’s own objects', async () => {
      const driver = await SyncDriver.acquire(store)
      await driver.cycle([
        upsert('a', { age: 1, name: 'Ann', gone: null }),
        upsert('b', { age: 2, name: 'Bob', gone: null }),
      ])
      await driver.cycle([upsert('c', { age: 0.5, name: 'Cid' }), upsert('d', { age: 'x', name: 'Dan' })])
      await harness.sql(`alter table ${harness.table} add column note text default 'mine'`)
      await harness.sql(`create index by_name on ${harness.table} (name)`)
      const info = (await store.schema(DATABASE))!
      expect(info.columns.map(({ member, column, type, origin }) => [member, column, type, origin])).toEqual([
        ['age', 'age', 'bigint', 'values'],
        ['name', 'name', 'text', 'values'],
        ['gone', null, 'text', 'values'],
      ])
      expect([info.rows, info.ownColumns, info.ownIndexes, info.isWaitingExact]).toEqual([
        4,
        ['note'],
        ['by_name'],
        true,
      ])
      expect(info.waiting).toEqual([
        { member: 'age', rows: 2, misfits: 2, types: { double: 1, text: 1 }, proposal: 'text' },
      ])
      expect(info.columns[1]!.dependents).toEqual([{ name: expect.stringContaining('by_name'), isKept: true }])
      expect(await store.schema('nothing')).toBeNull()
    })

    test('frozen columns stay as they are: a new field waits in _extra, is reported once, and gets its column by a change', async () => {
      const driver = await SyncDriver.acquire(store)
      const schemaModes = { [DATABASE]: 'freeze' } as const
      // The first records create the columns.
      await driver.cycle([upsert('a', { age: 1 })], { schemaModes })
      expect((await driver.cycle([upsert('b', { age: 2, late: 'x' })], { schemaModes })).drift).toEqual([
        `${DATABASE}.late is new (text) and the columns are frozen; it is kept in _extra`,
      ])
      expect((await driver.cycle([upsert('c', { age: 3, late: 'y' })], { schemaModes })).drift).toBeUndefined()
      expect(columnsOf(await store.schema(DATABASE))).toEqual(['age'])
      await change(store, [{ member: 'late', type: 'text' }])
      expect(columnsOf(await store.schema(DATABASE))).toEqual(['age', 'late'])
      expect(
        (await harness.sql<{ late: string | null }>(`select late from ${harness.table} order by _key`)).map(
          ({ late }) => late,
        ),
      ).toEqual([null, 'x', 'y'])
      expect(await readLiveRows(store)).toEqual([
        ['a', { age: 1 }],
        ['b', { age: 2, late: 'x' }],
        ['c', { age: 3, late: 'y' }],
      ])
    })

    test('a database in quarantine mode refuses records that do not fit, never sweeps them, and lands them after a change', async () => {
      const driver = await SyncDriver.acquire(store, { mode: 'replace' })
      const schemaModes = { [DATABASE]: 'quarantine' } as const
      await driver.cycle([upsert('a', { age: 1 }), upsert('b', { age: 2 })], { schemaModes })
      const { refused, counts } = await driver.cycle(
        [upsert('a', { age: 'one' }), upsert('b', { age: 2, late: 1 }), upsert('c', { age: 3 })],
        { schemaModes },
      )
      expect(counts).toMatchObject({ created: 1, updated: 0, swept: 0, quarantined: 2 })
      expect(refused!.map(({ key, code, message }) => [key, code, message])).toEqual([
        ['a', 'SCHEMA_MISMATCH', 'age is text, but its column is bigint'],
        ['b', 'SCHEMA_MISMATCH', 'late is new'],
      ])
      expect(await readLiveRows(store)).toEqual([
        ['a', { age: 1 }],
        ['b', { age: 2 }],
        ['c', { age: 3 }],
      ])
      const kept = await store.quarantineEntries()
      expect(kept.map(({ text }) => parseJson(text))).toEqual([
        { key: 'b', record: { age: 2, late: 1 } },
        { key: 'a', record: { age: 'one' } },
      ])
      await change(store, [{ member: 'age', type: 'text' }])
      expect(
        (
          await driver.cycle([upsert('a', { age: 'one' }), upsert('b', { age: 2 }), upsert('c', { age: 3 })], {
            schemaModes,
          })
        ).counts,
      ).toMatchObject({ updated: 1, unchanged: 2, quarantined: 0 })
      expect((await readLiveRows(store))[0]).toEqual(['a', { age: 'one' }])
    })

    test.each([
      ['schema', []],
      ['source', ['id']],
    ] as const)(
      'the first page in quarantine mode is checked against the types of its %s, and creates the undeclared columns',
      async (from, key) => {
        const driver = await SyncDriver.acquire(store)
        const options = {
          schemaModes: { [DATABASE]: 'quarantine' },
          shapes: [{ database: DATABASE, columns: [{ name: 'age', type: 'bigint', from }], key }],
        } as const
        const first = [
          upsert('1', { id: 1, age: 1, name: 'x' }),
          upsert('2', { id: 2, age: 'two', name: 'y' }),
          upsert('3', { id: 3, age: null, at: '2026-01-31' }),
        ]
        const { refused, counts, drift } = await driver.cycle(first, options)
        expect(counts).toMatchObject({ created: 2, quarantined: 1 })
        expect(refused!.map(({ key, message }) => [key, message])).toEqual([
          ['2', 'age is text, but its column is bigint'],
        ])
        expect([drift, columnsOf(await store.schema(DATABASE)).toSorted()]).toEqual([
          undefined,
          ['age', 'at', 'id', 'name'],
        ])
        const second = await driver.cycle(
          [upsert('2', { id: 2, age: 2, name: 'y' }), upsert('4', { id: 4, age: 4, late: true })],
          options,
        )
        expect(second.refused!.map(({ key, message }) => [key, message])).toEqual([['4', 'late is new']])
        expect(await readLiveRows(store)).toEqual([
          ['1', { id: 1, age: 1, name: 'x' }],
          ['2', { id: 2, age: 2, name: 'y' }],
          ['3', { id: 3, age: null, at: '2026-01-31' }],
        ])
        expect((await store.quarantineEntries()).map(({ key }) => key)).toEqual(['4'])
      },
    )

    test('the first page of a frozen database creates the undeclared columns', async () => {
      const driver = await SyncDriver.acquire(store)
      const options = {
        schemaModes: { [DATABASE]: 'freeze' },
        shapes: [{ database: DATABASE, columns: [{ name: 'age', type: 'bigint', from: 'schema' }], key: [] }],
      } as const
      const { drift } = await driver.cycle(
        [upsert('a', { age: 'one', name: 'x' }), upsert('b', { age: 2, name: 'y' })],
        options,
      )
      expect(drift).toEqual([
        `${DATABASE}.age: a value of type text does not fit the column of type bigint; it is kept in _extra`,
      ])
      expect((await driver.cycle([upsert('c', { age: 3, late: 1 })], options)).drift).toEqual([
        `${DATABASE}.late is new (bigint) and the columns are frozen; it is kept in _extra`,
      ])
      expect(columnsOf(await store.schema(DATABASE))).toEqual(['age', 'name'])
      expect(await readLiveRows(store)).toEqual([
        ['a', { age: 'one', name: 'x' }],
        ['b', { age: 2, name: 'y' }],
        ['c', { age: 3, late: 1 }],
      ])
    })

    test('a record that is already stored is never quarantined, whatever its columns', async () => {
      const driver = await SyncDriver.acquire(store)
      await driver.cycle([upsert('a', { age: 1 })])
      await driver.cycle([upsert('b', { age: 'x' })])
      const again = await driver.cycle([upsert('b', { age: 'x' })], { schemaModes: { [DATABASE]: 'quarantine' } })
      expect(again.counts).toMatchObject({ unchanged: 1, quarantined: 0 })
    })

    const CHANGES: Record<string, ColumnChange[]> = {
      'an integer to text': [{ member: 'n', type: 'text' }],
      'an integer to a larger one': [{ member: 'n', type: 'numeric' }],
      'an integer to any JSON': [{ member: 'n', type: 'json' }],
      'an integer to a number': [{ member: 'n', type: 'double' }],
      'a timestamp to text': [{ member: 'at', type: 'text' }],
      'text to a timestamp': [{ member: 'mixed', type: 'timestamp' }],
      'text to an integer': [{ member: 'mixed', type: 'bigint' }],
      'JSON to text': [{ member: 'list', type: 'text' }],
      'another name': [{ member: 'n', column: 'amount' }],
      'no column': [{ member: 'n', drop: true }],
      'several at once': [
        { member: 'n', type: 'text', column: 'amount' },
        { member: 'at', drop: true },
        { member: 'mixed', column: 'other' },
        { member: 'rare', type: 'json' },
      ],
    }

    test.each(Object.entries(CHANGES))(
      '%s: records, feed and history stay the same before, during and after the change, while records land',
      async (_, changes) => {
        const driver = await seed(store)
        const expected = new Map((await readLiveRows(store)).map(([key, record]) => [key, record]))
        const before = await shown(store)
        await store.beginSchemaChange(DATABASE, { changes, ...BY })
        let landings = 0
        for (let done = false; !done; landings++) {
          // Records land between the steps: new ones, changed ones, of the old type and of any other, with new fields.
          const record = recordOf(1_000 + landings)
          const [fresh, changed] = [`new${landings}`, `key${String(landings % ROWS).padStart(3, '0')}`]
          await driver.cycle([
            upsert(fresh, record),
            upsert(changed, { ...record, [`late${landings}`]: landings }),
            remove(`new${landings - 3}`),
          ])
          expected
            .set(fresh, record)
            .set(changed, { ...record, [`late${landings}`]: landings })
            .delete(`new${landings - 3}`)
          expect(new Map(await readLiveRows(store))).toEqual(expected)
          expect((await shown(store)).feed.slice(0, before.feed.length)).toEqual(before.feed)
          const step = await store.advanceSchemaChange(DATABASE, { at: START, rowsMax: 7 })
          expect(step).not.toBeNull()
          expect(step!.isLocked).toBe(false)
          done = step!.isDone
          expect(new Map(await readLiveRows(store))).toEqual(expected)
        }
        expect(landings).toBeGreaterThan(changes.some(({ type, drop }) => type !== undefined || drop) ? 5 : 1)
        await driver.cycle([upsert('last', recordOf(7))])
        expected.set('last', recordOf(7))
        expect(new Map(await readLiveRows(store))).toEqual(expected)
        const after = await shown(store)
        expect(after.feed.slice(0, before.feed.length)).toEqual(before.feed)
        for (const [key, entries] of before.histories)
          expect(after.histories.get(key)!.slice(0, entries.length)).toEqual(entries)
        const info = (await store.schema(DATABASE))!
        for (const wanted of changes)
          expect(columnOf(info, wanted.member)).toMatchObject(
            wanted.drop === true
              ? { column: null, isHeld: true }
              : { ...(wanted.type && { type: wanted.type }), column: wanted.column ?? wanted.member },
          )
        expect(info.change).toBeNull()
        expect(
          (await store.auditChain({ before: Number.MAX_SAFE_INTEGER, limit: 100 })).entries
            .filter(({ action }) => action.endsWith('schema-change'))
            .map(({ action, actor }) => [action, actor]),
        ).toEqual([
          ['end-schema-change', 'ana'],
          ['begin-schema-change', 'ana'],
        ])
        // A dropped field also comes back by a change.
        const dropped = changes.filter(({ drop }) => drop === true).map(({ member }) => ({ member, type: 'text' }))
        if (dropped.length > 0) {
          await change(store, dropped)
          expect(new Map(await readLiveRows(store))).toEqual(expected)
        }
      },
    )

    test('a process that is killed in any step loses nothing, and the next one continues', async () => {
      await seed(store)
      const before = await shown(store)
      const untouched = await readSnapshot(store)
      const changes = CHANGES['several at once']!
      let kills = 0
      await expect(harness.killNext(() => store.beginSchemaChange(DATABASE, { changes, ...BY }))).rejects.toThrow(
        'killed',
      )
      expect(await readSnapshot(store)).toEqual(untouched)
      await store.beginSchemaChange(DATABASE, { changes, ...BY })
      for (let done = false; !done;) {
        const dying = await harness.reopen()
        const { change: reached } = (await store.schema(DATABASE))!
        await expect(
          harness.killNext(() => dying.advanceSchemaChange(DATABASE, { at: START, rowsMax: 7 })),
        ).rejects.toThrow('killed')
        kills++
        expect((await store.schema(DATABASE))!.change).toEqual(reached)
        expect(await shown(store)).toEqual(before)
        done = (await (await harness.reopen()).advanceSchemaChange(DATABASE, { at: START, rowsMax: 7 }))!.isDone
        expect(await shown(store)).toEqual(before)
      }
      expect(kills).toBeGreaterThan(8)
      expect(await store.advanceSchemaChange(DATABASE, { at: START, rowsMax: 7 })).toBeNull()
    })

    test('an invalid change is refused before anything is written', async () => {
      await seed(store)
      const refusals: Array<[ColumnChange[], string]> = [
        [[], 'is empty'],
        [[{ member: 'n', type: 'money' }], 'Unknown type'],
        [[{ member: 'n', type: 'bigint' }], 'already'],
        [[{ member: 'n' }], 'No change is given'],
        [[{ member: 'nothing', drop: true }], 'no column'],
        [[{ member: 'nothing', column: 'x' }], 'no column'],
        [[{ member: 'n', column: 'at' }], 'already'],
        [[{ member: 'n', column: '_key' }], 'already'],
        [[{ member: 'n', column: 'x'.repeat(2_000) }], 'not a valid column name'],
        [
          [
            { member: 'n', drop: true },
            { member: 'n', type: 'text' },
          ],
          'twice',
        ],
        [[{ member: 'n', drop: true, type: 'text' }], 'in one request'],
      ]
      const before = await readSnapshot(store)
      for (const [changes, message] of refusals) {
        await expect(store.beginSchemaChange(DATABASE, { changes, ...BY })).rejects.toMatchObject({
          code: 'SCHEMA_CHANGE_INVALID',
          message: expect.stringContaining(message),
        })
      }
      await expect(
        store.beginSchemaChange('nothing', { changes: [{ member: 'n', drop: true }], ...BY }),
      ).rejects.toMatchObject({ code: 'SCHEMA_CHANGE_INVALID' })
      expect(await readSnapshot(store)).toEqual(before)
      await store.beginSchemaChange(DATABASE, { changes: [{ member: 'n', type: 'text' }], ...BY })
      await expect(
        store.beginSchemaChange(DATABASE, { changes: [{ member: 'at', type: 'text' }], ...BY }),
      ).rejects.toMatchObject({ message: expect.stringContaining('already running') })
    })

    test('a user’s column with the name of a new field is reported and left alone', async () => {
      const driver = await SyncDriver.acquire(store)
      await driver.cycle([upsert('a', { age: 1 })])
      await harness.sql(`alter table ${harness.table} add column late text default 'mine'`)
      const { drift } = await driver.cycle([upsert('a', { age: 2, late: 'theirs' })])
      expect(drift).toEqual([
        `${DATABASE}.late: the table already has another column of that name; the field is in the column late_2`,
      ])
      expect((await driver.cycle([upsert('a', { age: 3, late: 'again' })])).drift).toBeUndefined()
      expect(await harness.sql(`select late, late_2 from ${harness.table}`)).toEqual([
        { late: 'mine', late_2: 'again' },
      ])
    })
  })
}

/** Rows with values that fit their columns and values that do not, and a history. */
async function seed(store: Store): Promise<SyncDriver> {
  const driver = await SyncDriver.acquire(store)
  await driver.cycle([upsert('first', { n: 1, at: '2026-01-01T00:00:00.000Z', mixed: 'text', list: [1], flag: null })])
  for (const round of [0, 1])
    await driver.cycle(
      Array.from({ length: ROWS }, (_, at) => upsert(`key${String(at).padStart(3, '0')}`, recordOf(at + round * 3))),
    )
  await driver.cycle([remove('key001'), remove('key002')])
  await driver.cycle([upsert('key001', recordOf(99))])
  return driver
}

function recordOf(at: number): JsonObject {
  const values = [at, 'text', 0.5, null, 2n ** 70n, true, { deep: [at] }, -(2n ** 62n), '12', 1e300, '2026-02-03']
  const instants = ['2026-01-02T03:04:05.678Z', '2026-01-02T03:04:05Z', 'tomorrow', null, 5]
  return {
    n: values[at % values.length]!,
    at: instants[at % instants.length]!,
    mixed: values[(at + 3) % values.length]!,
    list: [at, 'x'],
    ...(at % 4 === 0 && { rare: values[at % 7]! }),
    ...(at % 3 === 0 && { flag: at % 2 === 0 ? null : 'y' }),
  }
}

interface Shown {
  readonly feed: unknown[]
  readonly rows: unknown[]
  readonly histories: Map<string, unknown[]>
}

/** Compares records by content: a change may reorder their fields. */
async function shown(store: Store): Promise<Shown> {
  const content = ({ text, ...rest }: LogEntry | Row): unknown => ({
    ...rest,
    record: text === null ? null : parseJson(text),
  })
  const entries = await readFeed(store)
  const histories = new Map<string, unknown[]>()
  for (const key of ['first', 'key000', 'key001', 'key002', 'key007'])
    histories.set(key, (await store.history(DATABASE, key)).map(content))
  return {
    feed: entries.map(content),
    rows: (await store.rows({ database: DATABASE, limit: 1_000 })).map(content),
    histories,
  }
}

export async function change(store: Store, changes: readonly ColumnChange[], lose = false): Promise<void> {
  await store.beginSchemaChange(DATABASE, { changes, ...BY, allowDependentLoss: lose })
  for (;;) {
    const step = await store.advanceSchemaChange(DATABASE, { at: START, rowsMax: 100 })
    if (step!.isDone) return
  }
}

function columnOf({ columns }: SchemaInfo, member: string): unknown {
  return columns.find((column) => column.member === member)
}

function columnsOf(info: SchemaInfo | null): string[] {
  return info!.columns.flatMap(({ column }) => column ?? [])
}
