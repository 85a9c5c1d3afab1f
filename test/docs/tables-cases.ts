import { expect, test } from 'vitest'
import type { Store, StoreLocation } from '../../src/contract/index.ts'
import { runSelect } from '../../src/stores/run-select.ts'
import { remove, SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import type { ToolContext } from '../../src/mcp/tool-context.ts'
import { queryTool } from '../../src/mcp/query-tool.ts'
import { blocksOf, commandsIn } from './blocks.ts'

const PAGE = 'docs/guides/tables.md'
const database = 'customers'
const sorted = (rows: readonly (readonly unknown[])[]) =>
  rows.toSorted(([a], [b]) => String(a).localeCompare(String(b)))

/** The queries of the guide, on a store that changed before and after the time they name. */
export function describeTablesGuide(open: () => Promise<{ store: Store; location: StoreLocation }>): void {
  test(`${PAGE}: the history queries return the same in SQL and by --as-of`, async () => {
    const { store, location } = await open()
    const sync = await SyncDriver.acquire(store)
    const customer = (key: string, name: string) => upsert(key, { name, email: `${name}@example.com` }, { database })
    await sync.cycle([customer('1', 'ada'), customer('2', 'bob')], { at: Date.UTC(2026, 9, 1) })
    await sync.cycle([customer('1', 'eve')], { at: Date.UTC(2026, 10, 2) })
    await sync.cycle([remove('2', { database })], { at: Date.UTC(2026, 10, 3) })

    const [, , asOf, dimension] = blocksOf(PAGE)
      .filter(({ language }) => language === 'sql')
      .map(({ text }) => text)
    const [command] = blocksOf(PAGE)
      .flatMap(commandsIn)
      .filter(([verb]) => verb === 'query')
    const select = async (sql: string, at?: number) =>
      (await runSelect(location, sql, { limit: 0, tenant: 'default', asOf: at })).rows
    const then = [
      ['ada', 'ada@example.com'],
      ['bob', 'bob@example.com'],
    ]
    expect(command!.slice(0, 2)).toEqual(['query', '--as-of'])
    expect(sorted(await select(asOf!))).toEqual(then)
    expect(sorted(await select(command![3]!, Date.parse(command![2]!)))).toEqual(then)
    expect(await select(dimension!)).toMatchObject([
      ['1', 'ada', expect.stringContaining('2026-10-01'), expect.stringContaining('2026-11-02'), 0],
      ['1', 'eve', expect.stringContaining('2026-11-02'), null, 1],
      ['2', 'bob', expect.stringContaining('2026-10-01'), expect.stringContaining('2026-11-03'), 0],
    ])
  })

  test(`${PAGE}: with soft deletes, one query excludes deleted rows, and another one includes them`, async () => {
    const { store, location } = await open()
    const sync = await SyncDriver.acquire(store)
    const customer = (key: string, name: string) => upsert(key, { name, email: `${name}@example.com` }, { database })
    const deletes = { [database]: 'soft' } as const
    // The query follows the table from sequence 1200 on.
    await sync.cycle([customer('1', 'ada'), customer('2', 'bob')], { deletes })
    await sync.cycle(Array.from({ length: 1_198 }, (_, n) => upsert(String(n), { n })))
    await sync.cycle([remove('2', { database })])
    const [live, changed] = blocksOf(PAGE)
      .filter(({ language }) => language === 'sql')
      .map(({ text }) => text)
    const select = async (sql: string) => (await runSelect(location, sql, { limit: 0, tenant: 'default' })).rows
    expect(await select(live!)).toEqual([['ada', 'ada@example.com']])
    expect((await select(changed!)).map(([key, name, isDeleted]) => [key, name, Boolean(isDeleted)])).toEqual([
      ['2', 'bob', true],
    ])
    expect(await select(`select count(*) from ${database}`)).toEqual([[2]])
    // Agents receive live rows, also in aggregates.
    const desk: ToolContext = {
      tenant: 'default',
      openExistingStore: async () => store,
      openOrCreateStore: async () => store,
      syncs: [],
      clock: { now: () => 0, sleep: async () => {} },
      actor: 'mcp:test',
      select: (sql, limit) => runSelect(location, sql, { limit, tenant: 'default' }),
      syntax: location.syntax,
    }
    expect(await queryTool.run(desk, { database, columns: ['_key', 'name'], limit: 10 })).toMatchObject({
      rows: [{ _key: '1', name: 'ada' }],
      truncated: false,
    })
    expect(await queryTool.run(desk, { database, aggregates: [{ function: 'count' }], limit: 10 })).toMatchObject({
      rows: [{ count: 1 }],
    })
  })
}
