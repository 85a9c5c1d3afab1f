import { describe, expect, test } from 'vitest'
import { runCycle } from '../../../src/worker/run-cycle.ts'
import { Worker } from '../../../src/worker/worker.ts'
import type { JsonObject } from '../../../src/contract/index.ts'
import { parseJson } from '../../../src/values/json.ts'
import { sqlTypeOf } from '../../stores/tables/sql-types.ts'
import { STORE_FIXTURES, type StoreFixture } from '../../stores/tables/store-fixture.ts'
import { DATABASE_CASES } from './databases.ts'
import { FILE_CASES } from './files-and-taps.ts'
import { DATABASE, type OpenCase, type TypeCase } from './type-case.ts'
import { VENDOR_CASES } from './vendors.ts'

const log = { debug() {}, info() {}, warn() {}, error() {} }
const CASES: readonly TypeCase[] = [...DATABASE_CASES, ...FILE_CASES, ...VENDOR_CASES]

describe.each(Object.keys(STORE_FIXTURES))('types of the source in the %s store', (kind) => {
  test.each(CASES.map((one) => [one.name, one] as const))(
    '%s: columns, keys and every value, in the first cycle and after a change',
    async (_, one) => {
      const place = await STORE_FIXTURES[kind]!()
      const system = await one.open()
      try {
        await check(kind, place, system, one)
      } finally {
        await system.close()
        await place.close()
      }
    },
  )
})

async function check(kind: string, place: StoreFixture, system: OpenCase, { types, key }: TypeCase): Promise<void> {
  const worker = new Worker({ name: 'types' })
  const { first, second } = system.declare(worker)
  const complete = async (sync: string): Promise<void> => {
    const { stopReason, error } = await runCycle(worker, sync, {
      store: place.store,
      log,
      secrets: { TOKEN: 'secret' },
      ...(system.fetch !== undefined && { fetch: system.fetch }),
    })
    expect({ stopReason, error }).toEqual({ stopReason: 'complete', error: null })
  }
  const expected = Object.fromEntries(
    Object.entries(types).map(([name, type]) => [
      name,
      `${sqlTypeOf(kind, type)}${key.includes(name) ? ' not null' : ''}`,
    ]),
  )
  const expectCopy = async (): Promise<void> => {
    expect(await place.store.quarantineEntries()).toEqual([])
    expect(await place.columns()).toEqual(expected)
    expect(await place.sql('select _key, _extra from things where _extra is not null')).toEqual([])
    await expectRecords(place, system.truth())
    const audit = (await place.store.audit({ worker: 'types', sync: first })).concat(
      await place.store.audit({ worker: 'types', sync: second }),
    )
    expect(audit.filter(({ action }) => action === 'drift').map(({ reason }) => reason)).toEqual([])
  }
  await complete(first)
  await expectCopy()
  expect(Object.keys(system.truth()).length).toBeGreaterThan(1)
  await expectKey(place, key)
  await system.change()
  await complete(second)
  await expectCopy()
}

/** Reads the rows and the feed. */
async function expectRecords({ store }: StoreFixture, truth: Readonly<Record<string, JsonObject>>): Promise<void> {
  const rows = await store.rows({ database: DATABASE, limit: 1_000 })
  const entries = (await store.changes({ after: 0, limit: 1_000 })).filter(({ database }) => database === DATABASE)
  const fed = new Map(entries.map(({ key, text }) => [key, text]))
  expect(rows.map(({ key }) => key).toSorted()).toEqual(Object.keys(truth).toSorted())
  for (const { key, text } of rows)
    expect([parseJson(text), parseJson(fed.get(key)!)]).toEqual([truth[key], truth[key]])
}

async function expectKey({ sql }: StoreFixture, key: readonly string[]): Promise<void> {
  if (key.length === 0) return
  const names = key.map((name) => `"${name}"`)
  for (const name of names) await expect(sql(`update things set ${name} = null`)).rejects.toThrow(/null/i)
  const ofFirst = names.map((name) => `${name} = (select ${name} from things order by _key limit 1)`).join(', ')
  await expect(sql(`update things set ${ofFirst}`)).rejects.toThrow(/unique/i)
}
