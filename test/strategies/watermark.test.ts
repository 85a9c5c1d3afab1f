import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SyncError, type Execute, type JsonObject } from '../../src/contract/index.ts'
import type { CycleResult } from '../../src/engine/cycle-options.ts'
import {
  toEnvelope,
  fileCursor,
  fileOrder,
  literalSqlQuery,
  newerFiles,
  odataQuery,
  toRegistryRecord,
  soqlQuery,
  sqlQuery,
  watermark,
  type WatermarkAnswer,
  type WatermarkInput,
  type WatermarkOptions,
  type WatermarkQuery,
  type WatermarkState,
} from '../../src/strategies/index.ts'
import { canonicalizeInstant } from '../../src/values/instant.ts'
import { planOf, ref, EngineFixture, SECOND, storeWith } from '../engine/engine-fixture.ts'
import { iso, runOn, setState, stateOn } from './run-strategy.ts'

let scene: EngineFixture

beforeEach(async () => {
  scene = await EngineFixture.open()
})
afterEach(() => scene.close())

const cycle = (execute: Execute<any>, choices: Parameters<typeof runOn>[2] = {}): Promise<CycleResult> =>
  runOn(scene, execute, choices)
const state = (): Promise<WatermarkState | null> => stateOn(scene)

interface Entry extends JsonObject {
  id: string
  at: string | null
}

/** A system that filters and sorts as it is asked to, and remembers the questions. */
class Ledger {
  rows: Entry[] = []
  readonly asked: WatermarkQuery[] = []

  put(id: string, at: string | null, more: JsonObject = {}): void {
    this.rows = [...this.rows.filter((row) => row.id !== id), { id, at, ...more }]
  }

  select({ from, after, order, limit }: WatermarkQuery): Entry[] {
    const placed = (row: Entry): string =>
      order === 'key' ? row.id : `${canonicalizeInstant(row.at ?? '') ?? ''} ${row.id}`
    const bound = from === null ? '' : canonicalizeInstant(String(from.cursor))!
    const place =
      after === undefined
        ? ''
        : order === 'key'
          ? String(after.key[0])
          : `${canonicalizeInstant(String(after.cursor))!} ${after.key[0]}`
    return this.rows
      .filter(
        ({ at }) =>
          from === null ||
          (from.bound === '>' ? canonicalizeInstant(at!)! > bound : canonicalizeInstant(at!)! >= bound),
      )
      .toSorted((a, b) => (placed(a) < placed(b) ? -1 : 1))
      .filter((row) => placed(row) > place)
      .slice(0, limit)
  }

  read(query: WatermarkQuery): WatermarkAnswer {
    this.asked.push(query)
    const items = this.select(query)
    return { items, end: items.length < query.limit }
  }
}

function watermarkOf(ledger: Ledger, options: Partial<WatermarkOptions> = {}): Execute<WatermarkState> {
  return watermark({
    streamId: 'shop.orders',
    cursorField: 'at',
    key: ['id'],
    read: async (query) => ledger.read(query),
    limit: 3,
    ...options,
  })
}

const at = (seconds: number): string => iso(scene.clock.now() - 3_600 * SECOND + seconds * SECOND)
const of = (ledger: Ledger): Record<string, Entry> => Object.fromEntries(ledger.rows.map((row) => [row.id, row]))

describe('the state', () => {
  test('R4 R5 R19 the input is what the last cycle left, without its count, and frozen', async () => {
    const ledger = new Ledger()
    ledger.put('a', at(1))
    await cycle(watermarkOf(ledger))
    await cycle(watermarkOf(ledger))
    const { input } = ledger.asked[1]!
    expect(input).toEqual({ stream_id: 'shop.orders', cursor_field: 'at', cursor_value: ledger.rows[0]!.at })
    expect(() => {
      ;(input as { cursor_value: unknown }).cursor_value = null
    }).toThrow(TypeError)
  })

  test('R16 R20 R21 only a cycle that succeeds leaves an output: the stream, the field, the greatest value and the count', async () => {
    const ledger = new Ledger()
    for (let index = 0; index < 7; index++) ledger.put(`r${index}`, at(index))
    let fails = true
    const execute = watermarkOf(ledger, {
      read: async (query) => {
        if (query.after !== undefined && fails) throw new SyncError('AUTH_REJECTED', 'no')
        return ledger.read(query)
      },
    })
    expect(await cycle(execute)).toMatchObject({ stopReason: 'error' })
    expect(await state()).toBeNull()
    fails = false
    await cycle(execute)
    expect(await state()).toEqual({
      stream_id: 'shop.orders',
      cursor_field: 'at',
      cursor_value: ledger.rows[6]!.at,
      records_emitted: 7,
    })
  })

  test('R12 without a state it begins at `since`, and keeps that when there is nothing', async () => {
    const ledger = new Ledger()
    const since = at(5)
    await cycle(watermarkOf(ledger, { since }))
    expect(await state()).toMatchObject({ cursor_value: since, records_emitted: 0 })
    ledger.put('old', iso(Date.parse(since) - SECOND))
    ledger.put('new', since)
    await cycle(watermarkOf(ledger))
    expect(await scene.keys()).toEqual(['new'])
  })

  test('a state of another stream, of another field or with no cursor in it is refused', async () => {
    for (const wrong of [
      { stream_id: 'other' },
      { cursor_field: 'created' },
      { cursor_value: 'yesterday' },
      { cursor_value: 5 },
    ]) {
      await setState(scene, { stream_id: 'shop.orders', cursor_field: 'at', cursor_value: at(1), ...wrong })
      expect((await cycle(watermarkOf(new Ledger()))).error, JSON.stringify(wrong)).toMatchObject({
        code: 'CURSOR_REJECTED',
      })
    }
  })

  test('R7 R10 the record of the registry: one per tenant, connector and stream', async () => {
    const ledger = new Ledger()
    ledger.put('a', at(1))
    await cycle(watermarkOf(ledger))
    expect(toRegistryRecord('t1', ref(), await scene.checkpoint())).toEqual({
      tenant_id: 't1',
      connector_id: 'shop',
      stream_id: 'shop.orders',
      last_cursor: ledger.rows[0]!.at,
      cursor_field: 'at',
      version: 1,
    })
    expect(toRegistryRecord('t1', ref('other'), await scene.checkpoint('other'))).toEqual({
      tenant_id: 't1',
      connector_id: 'shop',
      stream_id: 'other',
      last_cursor: null,
      cursor_field: null,
      version: 0,
    })
  })
})

describe('what is read', () => {
  test('F4 records that share a cursor at the border of a page come once each, also with a tie over several pages', async () => {
    const ledger = new Ledger()
    for (let index = 0; index < 9; index++) ledger.put(`r${index}`, at(index < 8 ? 1 : 2))
    expect(await cycle(watermarkOf(ledger))).toMatchObject({ counts: { created: 9, unchanged: 0 } })
    expect(await scene.rows()).toEqual(of(ledger))
    expect(ledger.asked[1]!.after).toEqual({ cursor: ledger.rows[2]!.at, key: ['r2'] })
  })

  test('F4 R29 R30 the next cycle reads the records at the watermark again: what appeared beside them lands, what is known leaves no trace', async () => {
    const ledger = new Ledger()
    ledger.put('a', at(1))
    await cycle(watermarkOf(ledger))
    ledger.put('b', ledger.rows[0]!.at)
    expect(await cycle(watermarkOf(ledger))).toMatchObject({ counts: { created: 1, unchanged: 1 } })
    expect(ledger.asked[1]!.from).toEqual({ cursor: ledger.rows[0]!.at, bound: '>=' })
    expect(await scene.feed()).toHaveLength(2)
  })

  test('F4 as a control: a strict cycle asks with a bare > and does not see it', async () => {
    const ledger = new Ledger()
    ledger.put('a', at(1))
    await cycle(watermarkOf(ledger, { strict: true }))
    ledger.put('b', ledger.rows[0]!.at)
    await cycle(watermarkOf(ledger, { strict: true }))
    expect(ledger.asked[1]!.from).toEqual({ cursor: ledger.rows[0]!.at, bound: '>' })
    expect(await scene.keys()).toEqual(['a'])
  })

  test('R46 what the source sends from before the position is refused, and nothing of the page lands', async () => {
    const ledger = new Ledger()
    ledger.put('a', at(5))
    await cycle(watermarkOf(ledger))
    const before = await state()
    const unfiltered = watermarkOf(ledger, { read: async () => ({ items: [{ id: 'old', at: at(-900) }], end: true }) })
    expect((await cycle(unfiltered)).error).toMatchObject({ code: 'SOURCE_INVALID' })
    expect(await state()).toEqual(before)
    expect(await scene.keys()).toEqual(['a'])
  })

  test('R1 R15 R47 the watermark is the greatest of all pages, also when the pages of the source have no order', async () => {
    const pages = [[30, 10], [50, 20], [40]].map((page) =>
      page.map((seconds) => ({ id: `r${seconds}`, at: at(seconds) })),
    )
    const execute = watermark({
      streamId: 'shop.orders',
      cursorField: 'at',
      key: ['id'],
      limit: 2,
      read: async ({ page = '0' }) => ({
        items: pages[Number(page)]!,
        end: page === '2',
        page: page === '2' ? null : String(Number(page) + 1),
      }),
    })
    expect(await cycle(execute)).toMatchObject({ stopReason: 'complete', pages: 3 })
    expect(await state()).toMatchObject({ cursor_value: pages[1]![0]!.at, records_emitted: 5 })
    expect(scene.logged.join('\n')).not.toContain('does not order')
  })

  test('R37 R38 R49 the safety window is read again where one is set, and only there', async () => {
    const ledger = new Ledger()
    ledger.put('a', '2026-01-31T12:00:00Z')
    await cycle(watermarkOf(ledger))
    ledger.put('late', '2026-01-31T11:56:00Z')
    await cycle(watermarkOf(ledger))
    expect(await scene.keys()).toEqual(['a'])
    await cycle(watermarkOf(ledger, { safetyWindow: 'PT5M' }))
    expect(ledger.asked.at(-1)!.from).toEqual({ cursor: '2026-01-31T11:55:00Z', bound: '>=' })
    expect(await scene.keys()).toEqual(['a', 'late'])
    // Records of the window do not move the watermark back.
    expect(await state()).toMatchObject({ cursor_value: '2026-01-31T12:00:00Z' })
  })

  test('R37 a record from the future does not advance the watermark when the source reports its time', async () => {
    const ledger = new Ledger()
    const now = scene.clock.now()
    ledger.put('jumped', iso(now + 86_400 * SECOND))
    const execute = watermarkOf(ledger, {
      read: async (query) => ({ ...ledger.read(query), serverTime: scene.clock.now() }),
    })
    await cycle(execute)
    expect(
      canonicalizeInstant(String((await state())!.cursor_value))! <= canonicalizeInstant(iso(scene.clock.now()))!,
    ).toBe(true)
    scene.clock.step(SECOND)
    ledger.put('rightly', iso(scene.clock.now()))
    await cycle(execute)
    expect(await scene.keys()).toEqual(['jumped', 'rightly'])
  })

  test('options that contradict each other are refused when the sync is declared', () => {
    const ledger = new Ledger()
    for (const wrong of [
      { safetyWindow: '5m' },
      { safetyWindow: 'PT5M', strict: true },
      { safetyWindow: 'PT5M', cursorKind: 'integer' as const },
      { key: [] },
      { streamId: '' },
      { since: 'now' },
      { limit: 0 },
    ]) {
      expect(() => watermarkOf(ledger, wrong), JSON.stringify(wrong)).toThrow(
        expect.objectContaining({ code: 'SYNC_INVALID' }),
      )
    }
  })
})

describe('failures', () => {
  test('R36 a page that the store refused does not raise the watermark, and is read again', async () => {
    const ledger = new Ledger()
    for (let index = 0; index < 5; index++) ledger.put(`r${index}`, at(index))
    let commits = 0
    const store = storeWith(scene.store, {
      commit: (commit) =>
        ++commits === 2 ? Promise.reject(new SyncError('STORE_FAILED', 'refused')) : scene.store.commit(commit),
    })
    const plan = planOf({ execute: watermarkOf(ledger), limits: { retriesMax: 0 } })
    expect(await scene.run(plan, { store })).toMatchObject({ stopReason: 'error' })
    const { inflight } = await scene.checkpoint()
    expect((JSON.parse(inflight!.state!) as WatermarkState).run).toMatchObject({ max: ledger.rows[2]!.at, emitted: 3 })
    expect(await state()).toBeNull()
    await scene.run(plan)
    expect(await state()).toMatchObject({ cursor_value: ledger.rows[4]!.at, records_emitted: 5 })
    expect(await scene.rows()).toEqual(of(ledger))
  })

  test('R34 R48 a cycle that failed half-way is read again from the same watermark, and lands nothing twice', async () => {
    const ledger = new Ledger()
    for (let index = 0; index < 5; index++) ledger.put(`r${index}`, at(index))
    const broken = watermarkOf(ledger, {
      read: async (query) =>
        query.after === undefined ? ledger.read(query) : Promise.reject(new SyncError('AUTH_REJECTED', 'no')),
    })
    await cycle(broken)
    await setState(scene, { stream_id: 'shop.orders', cursor_field: 'at', cursor_value: null })
    expect(await cycle(watermarkOf(ledger))).toMatchObject({ counts: { created: 2, unchanged: 3 } })
    expect(await scene.feed()).toHaveLength(5)
  })

  test('R35 a page that fails is asked for again with fewer records, and later pages grow again', async () => {
    const ledger = new Ledger()
    for (let index = 0; index < 40; index++) ledger.put(`r${String(index).padStart(2, '0')}`, at(index))
    const limits: number[] = []
    const execute = watermarkOf(ledger, {
      limit: 16,
      read: async (query) => {
        limits.push(query.limit)
        // One record at the beginning makes every page of more than four fail.
        if (query.limit > 4 && query.after === undefined) throw new SyncError('SOURCE_TIMEOUT', 'too slow')
        return ledger.read(query)
      },
    })
    expect(await cycle(execute)).toMatchObject({ stopReason: 'complete', counts: { created: 40 } })
    expect(limits).toEqual([16, 8, 4, 8, 16, 16])
  })

  test('R35 what smaller pages do not heal fails after a few tries, and refused credentials at once', async () => {
    for (const [code, asked] of [
      ['SOURCE_UNAVAILABLE', 4],
      ['AUTH_REJECTED', 1],
    ] as const) {
      let count = 0
      const result = await cycle(
        watermarkOf(new Ledger(), { limit: 1_000, read: () => (count++, Promise.reject(new SyncError(code, 'no'))) }),
      )
      expect(result.error).toMatchObject({ code })
      expect(count).toBe(asked)
    }
  })
})

describe('a cursor that does not order the stream', () => {
  /** Says it sorts by the cursor, and sorts by the key. */
  function unsorted(ledger: Ledger): Execute<WatermarkState> {
    return watermarkOf(ledger, { read: async (query) => ledger.read({ ...query, order: 'key' }) })
  }

  test('R2 R3 is reported, and all of it is read by the key instead, each time until it is in order', async () => {
    const ledger = new Ledger()
    for (const [id, seconds] of [
      ['a', 9],
      ['b', 1],
      ['c', 8],
      ['d', 2],
      ['e', 7],
    ] as const)
      ledger.put(id, at(seconds))
    expect(await cycle(unsorted(ledger))).toMatchObject({ stopReason: 'complete', counts: { created: 5 } })
    expect(scene.logged.join('\n')).toContain('the cursor does not order the stream; reading the whole stream')
    expect(ledger.asked.at(-1)).toMatchObject({ order: 'key', from: null })
    expect(await state()).toMatchObject({ cursor_value: null, records_emitted: 5 })
    expect(await scene.rows()).toEqual(of(ledger))
    // A record whose cursor falls is seen all the same.
    ledger.put('c', at(-500), { v: 2 })
    await cycle(unsorted(ledger))
    expect(await scene.rows()).toEqual(of(ledger))
    // Repaired: back to reading what is new.
    await cycle(watermarkOf(ledger))
    expect(await state()).toMatchObject({ cursor_value: ledger.rows.find(({ id }) => id === 'a')!.at })
  })

  test('R3 so is one that a record lacks', async () => {
    const ledger = new Ledger()
    ledger.put('a', at(1))
    ledger.put('b', null)
    await cycle(watermarkOf(ledger))
    expect(await scene.rows()).toEqual(of(ledger))
    expect(await state()).toMatchObject({ cursor_value: null, records_emitted: 2 })
  })

  test('R3 a replace sync reads all of it by the key, and what is gone is swept', async () => {
    const ledger = new Ledger()
    for (let index = 0; index < 7; index++) ledger.put(`r${index}`, at(7 - index))
    await cycle(watermarkOf(ledger), { mode: 'replace' })
    ledger.rows = ledger.rows.slice(1)
    await cycle(watermarkOf(ledger), { mode: 'replace' })
    expect(await scene.rows()).toEqual(of(ledger))
    expect(ledger.asked.every(({ order, from }) => order === 'key' && from === null)).toBe(true)
  })
})

describe('what comes out', () => {
  test('R27 R28 R32 every record has an envelope with its stream, time, cursor and key; reading it again makes no second one', async () => {
    const ledger = new Ledger()
    ledger.put('100-445', at(1), { name: 'Cash' })
    await cycle(watermarkOf(ledger))
    await cycle(watermarkOf(ledger))
    const feed = await scene.feed()
    expect(feed.map((entry) => toEnvelope(entry, { streamId: 'shop.orders', key: ['id'] }))).toEqual([
      {
        stream: 'shop.orders',
        emitted_at: iso(feed[0]!.committedAt).replace('.000Z', 'Z'),
        cursor: ledger.rows[0]!.at,
        key: { id: '100-445' },
        record: ledger.rows[0],
      },
    ])
  })

  test('R28 a key of several fields is always written the same, and no two read the same', async () => {
    const items = [
      { a: '1', b: 2, at: at(1) },
      { a: '1,2', b: 0, at: at(1) },
      { a: null, b: 1, at: at(1) },
    ]
    await cycle(
      watermark({
        streamId: 's',
        cursorField: 'at',
        key: ['a', 'b'],
        limit: 10,
        read: async () => ({ items, end: true }),
      }),
    )
    const feed = await scene.feed()
    expect(feed.map(({ key }) => key)).toEqual(['["1","2"]', '["1,2","0"]'])
    expect(toEnvelope(feed[0]!, { streamId: 's', key: ['a', 'b'] }).key).toEqual({ a: '1', b: 2 })
    expect(toEnvelope({ ...feed[0]!, text: null }, { streamId: 's', key: ['a', 'b'] })).toMatchObject({
      key: { a: '1', b: '2' },
      record: null,
    })
  })
})

describe('the documented examples', () => {
  const since = '2025-09-30T23:59:59Z'
  const asked = (
    input: Omit<WatermarkInput, 'cursor_value'> & { cursor_value: string | number },
    limit: number,
    more: Partial<WatermarkQuery> = {},
  ): WatermarkQuery => ({
    input,
    from: { cursor: input.cursor_value, bound: '>' },
    after: undefined,
    order: 'cursor',
    page: undefined,
    limit,
    ...more,
  })

  /** Runs a stream from an input to its output, and gives the text of the first question. */
  async function run(
    input: WatermarkInput,
    options: Omit<WatermarkOptions, 'streamId' | 'cursorField' | 'read'> & { key: readonly string[] },
    top: string,
    records: number,
    write: (query: WatermarkQuery) => string,
  ): Promise<{ request: string; given: WatermarkInput; output: unknown }> {
    await setState(scene, input)
    const questions: WatermarkQuery[] = []
    const item = (index: number): JsonObject => ({
      ...Object.fromEntries(options.key.map((field) => [field, `k${String(index).padStart(7, '0')}`])),
      [input.cursor_field]: top,
    })
    await cycle(
      watermark({
        ...options,
        streamId: input.stream_id,
        cursorField: input.cursor_field,
        read: async (query) => {
          const start = questions.push(query) - 1
          const items = Array.from({ length: Math.min(query.limit, records - start * query.limit) }, (_, index) =>
            item(start * query.limit + index),
          )
          return { items, end: (start + 1) * query.limit >= records }
        },
      }),
    )
    return { request: write(questions[0]!), given: questions[0]!.input, output: await state() }
  }

  test('R23 R24 SQL by a timestamp and by a numeric id', () => {
    expect(
      sqlQuery(
        { name: 'GLAccounts', key: ['AccountID'] },
        asked({ stream_id: 's', cursor_field: 'LastUpdated', cursor_value: since }, 1_000),
      ),
    ).toEqual({
      text: 'SELECT * FROM GLAccounts WHERE LastUpdated > :cursor_value ORDER BY LastUpdated, AccountID LIMIT :page_size',
      values: { cursor_value: since, page_size: 1_000 },
    })
    expect(
      sqlQuery({ name: 'orders', key: ['id'] }, asked({ stream_id: 's', cursor_field: 'id', cursor_value: 41 }, 500)),
    ).toEqual({
      text: 'SELECT * FROM orders WHERE id > :cursor_value ORDER BY id LIMIT :page_size',
      values: { cursor_value: 41, page_size: 500 },
    })
  })

  test('R26 R39 SAP by OData', async () => {
    const input = { stream_id: 'sap.s4hana.gl_accounts', cursor_field: 'LastUpdated', cursor_value: since }
    const { request, given, output } = await run(
      input,
      { key: ['AccountID'], limit: 1_000, strict: true },
      '2025-10-02T11:20:45Z',
      12_894,
      (query) => odataQuery({ name: 'GLAccounts', key: [] }, query),
    )
    expect(`GET ${request}`).toBe(
      'GET /GLAccounts?$filter=LastUpdated gt 2025-09-30T23:59:59Z&$orderby=LastUpdated asc&$top=1000',
    )
    expect(given).toEqual(input)
    expect(output).toEqual({ ...input, cursor_value: '2025-10-02T11:20:45Z', records_emitted: 12_894 })
  })

  test('R25 R39 Salesforce by SOQL', async () => {
    const input = { stream_id: 'sf.account', cursor_field: 'SystemModstamp', cursor_value: since }
    const { request, given, output } = await run(
      input,
      { key: ['Id'], limit: 2_000, strict: true },
      '2025-10-02T09:12:04Z',
      44_201,
      (query) => soqlQuery({ name: 'Account', fields: ['Id', 'Name', 'SystemModstamp'], key: [] }, query),
    )
    expect(request).toBe(
      'SELECT Id, Name, SystemModstamp FROM Account WHERE SystemModstamp > 2025-09-30T23:59:59Z ORDER BY SystemModstamp ASC LIMIT 2000',
    )
    expect(given).toEqual(input)
    expect(output).toEqual({ ...input, cursor_value: '2025-10-02T09:12:04Z', records_emitted: 44_201 })
  })

  test('R39 R40 a table by JDBC', async () => {
    const input = { stream_id: 'jdbc.public.customers', cursor_field: 'updated_at', cursor_value: since }
    const { request, given, output } = await run(
      input,
      { key: ['id'], limit: 10_000, strict: true },
      '2025-10-02T08:00:00Z',
      9_903,
      (query) => literalSqlQuery({ name: 'public.customers', key: ['id'] }, query),
    )
    expect(request).toBe(
      "SELECT * FROM public.customers WHERE updated_at > '2025-09-30 23:59:59+00' ORDER BY updated_at, id LIMIT 10000",
    )
    expect(given).toEqual(input)
    expect(output).toEqual({ ...input, cursor_value: '2025-10-02T08:00:00Z', records_emitted: 9_903 })
  })

  test('R39 R41 files: those after the last one processed, and that one when it holds something else', async () => {
    const base = 's3://bucket/sales/orders'
    const last = { path: `${base}/2025-09-30/orders_2359.csv.gz`, sha256: 'abc' }
    const next = { path: `${base}/2025-10-02/orders_1200.csv.gz`, sha256: 'def' }
    const files = [next, last, { path: `${base}/2025-09-29/orders_2359.csv.gz`, sha256: '000' }]
    const input = {
      stream_id: 'file.s3.sales_orders_csv',
      cursor_field: '_file_checkpoint',
      cursor_value: fileCursor(last),
    }
    expect(input.cursor_value).toBe('s3://bucket/sales/orders/2025-09-30/orders_2359.csv.gz#sha256=abc')
    await setState(scene, input)
    // A file is read in pieces, which link to one another.
    const pieces = 5
    const execute = (listed: typeof files): Execute<WatermarkState> =>
      watermark({
        streamId: input.stream_id,
        cursorField: '_file_checkpoint',
        cursorKind: fileOrder,
        key: ['path', 'row'],
        limit: 10,
        strict: true,
        read: async (query) => {
          const piece = Number(query.page ?? 0)
          const items = newerFiles(listed, query).flatMap((file) =>
            Array.from({ length: 25_000 }, (_, row) => ({
              path: file.path,
              row: piece * 25_000 + row,
              _file_checkpoint: fileCursor(file),
            })),
          )
          const end = items.length === 0 || piece + 1 === pieces
          return { items, end, page: end ? null : String(piece + 1) }
        },
      })
    await cycle(execute(files))
    expect(await state()).toEqual({
      ...input,
      cursor_value: 's3://bucket/sales/orders/2025-10-02/orders_1200.csv.gz#sha256=def',
      records_emitted: 125_000,
    })
    await cycle(execute(files))
    expect(await state()).toMatchObject({ records_emitted: 0 })
  })

  test('R41 a rewritten file is read once more, and then known by its new content', async () => {
    const file = { path: 's3://bucket/a.csv', sha256: 'abc' }
    const execute = (sha256: string): Execute<WatermarkState> =>
      watermark({
        streamId: 'file.s3.a',
        cursorField: '_file_checkpoint',
        cursorKind: fileOrder,
        key: ['path'],
        limit: 10,
        strict: true,
        read: async (query) => ({
          items: newerFiles([{ ...file, sha256 }], query).map((found) => ({
            path: found.path,
            _file_checkpoint: fileCursor(found),
          })),
          end: true,
        }),
      })
    const emitted: unknown[] = []
    for (const sha256 of ['abc', 'abc', 'fed', 'fed']) {
      await cycle(execute(sha256))
      emitted.push((await state())!.records_emitted)
    }
    expect(emitted).toEqual([1, 0, 1, 0])
    expect(await state()).toMatchObject({ cursor_value: 's3://bucket/a.csv#sha256=fed' })
  })

  test('R42 a place in a log of changes, as text, committed with the rows that were acknowledged', async () => {
    const input = { stream_id: 'jdbc.public.orders.cdc', cursor_field: 'lsn', cursor_value: '0000:001A:00F3' }
    await setState(scene, input)
    await cycle(
      watermark({
        streamId: input.stream_id,
        cursorField: 'lsn',
        cursorKind: 'text',
        key: ['id'],
        limit: 10,
        strict: true,
        read: async ({ from }) => ({
          items: [{ id: 1, lsn: '0000:001A:0100' }].filter(({ lsn }) => lsn > String(from!.cursor)),
          end: true,
        }),
      }),
    )
    expect(await state()).toEqual({ ...input, cursor_value: '0000:001A:0100', records_emitted: 1 })
  })

  test('F4 within a run every text asks for what is above the last record, by cursor and key', () => {
    const query = asked({ stream_id: 's', cursor_field: 'at', cursor_value: since }, 5, {
      after: { cursor: '2025-10-01T00:00:00+02:00', key: ["O'Neil", 7] },
    })
    expect(sqlQuery({ name: 't', key: ['name', 'no'] }, query)).toEqual({
      text: 'SELECT * FROM t WHERE (at > :cursor_value OR (at = :cursor_value AND (name > :key_name OR (name = :key_name AND no > :key_no)))) ORDER BY at, name, no LIMIT :page_size',
      values: { cursor_value: '2025-10-01T00:00:00+02:00', key_name: "O'Neil", key_no: 7, page_size: 5 },
    })
    expect(literalSqlQuery({ name: 't', key: ['name'] }, query)).toContain(
      "(at > '2025-09-30 22:00:00+00' OR (at = '2025-09-30 22:00:00+00' AND name > 'O''Neil'))",
    )
    expect(soqlQuery({ name: 'T', fields: ['Id'], key: ['name'] }, query)).toBe(
      "SELECT Id FROM T WHERE (at > 2025-09-30T22:00:00Z OR (at = 2025-09-30T22:00:00Z AND name > 'O\\'Neil')) ORDER BY at ASC, name ASC LIMIT 5",
    )
    expect(odataQuery({ name: 'T', key: ['name'] }, query)).toBe(
      "/T?$filter=(at gt 2025-09-30T22:00:00Z or (at eq 2025-09-30T22:00:00Z and name gt 'O''Neil'))&$orderby=at asc,name asc&$top=5",
    )
    expect(literalSqlQuery({ name: 't', key: ['name'] }, { ...query, order: 'key', from: null })).toBe(
      "SELECT * FROM t WHERE name > 'O''Neil' ORDER BY name LIMIT 5",
    )
  })

  test('XD25 no name and no value ends its own quotes', () => {
    const query = asked({ stream_id: 's', cursor_field: 'at', cursor_value: since }, 5, {
      after: { cursor: since, key: ["x'&$top=9\\"] },
    })
    for (const write of [sqlQuery, literalSqlQuery, soqlQuery, odataQuery])
      expect(() => write({ name: 't; drop table t', key: ['id'] }, query)).toThrow(
        expect.objectContaining({ code: 'SYNC_INVALID' }),
      )
    expect(odataQuery({ name: 'T', key: ['id'] }, query)).toContain("id gt 'x''%26%24top%3D9%5C'")
    expect(soqlQuery({ name: 'T', fields: ['Id'], key: ['Id'] }, query)).toContain("Id > 'x\\'&$top=9\\\\'")
  })
})
