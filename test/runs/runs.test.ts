import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStore } from '../../src/config/open-store.ts'
import type { Clock } from '../../src/contract/index.ts'
import { Stream } from '../../src/testing/simulation/random.ts'
import { serve, type Fields, type LoggedRequest, type VendorSimulator } from '../../src/testing/simulators/index.ts'
import { buildPackage, type Build } from '../process/build.ts'
import { Child, killChildren } from '../process/child.ts'
import { sqliteStand, type Stand } from '../process/stand.ts'
import { VENDORS, type Counts, type Cycle, type Vendor } from './vendors.ts'

/**
 * Every vendor whole: its simulator behind a socket here, source, engine and SQLite in a process of their own. `npm run runs`
 * does it at full size and prints the figures.
 */
const RECORDS = Number(process.env['TIDEMARK_RUN_RECORDS'] ?? 20_000)
const CHANGES = RECORDS / 10
const COUNTS: Counts = { records: RECORDS, updated: CHANGES * 0.8, created: CHANGES * 0.1, deleted: CHANGES * 0.1 }

/** The records alone, parsed, would need more than the heap may have at full size; with all of Node a run peaks near 150. */
const HEAP_MEGABYTES = 64
const PEAK_MAX_MEGABYTES = 200

interface Figures {
  readonly vendor: string
  readonly 'records/s': number
  readonly requests: number
  readonly minimum: number
  readonly 'peak MB': number
}

let build: Build
let stand: Stand
const table: Figures[] = []

beforeAll(async () => {
  build = await buildPackage()
  stand = sqliteStand()
})

afterAll(async () => {
  killChildren()
  await stand.remove()
  build.remove()
  console.table(table)
})

test.skipIf(process.platform !== 'linux').each(VENDORS.map((vendor) => [vendor.name, vendor] as const))('%s is copied and followed in as few requests as it allows, in bounded memory', async (name, vendor) => {
  const clock = new RunClock()
  const simulator = vendor.make({ clock, random: new Stream(1, name) })
  const ids = fill(vendor, simulator, clock)
  await using server = await serve(simulator)
  const store = await stand.fresh()
  const child = new Child(build, '../../runs/measured.mjs', { input: { vendor: name.split(' ')[0], url: server.url, store }, nodeFlags: [`--max-old-space-size=${HEAP_MEGABYTES}`] })

  const backfill = await cycle(child, simulator, vendor.backfill, clock)
  expect(backfill.counts).toMatchObject({ created: RECORDS })
  let requests = backfill.asked.length
  let minimum = vendor.backfill.minimum(COUNTS, simulator, backfill.asked)
  expect(requests).toBe(minimum)

  change(vendor, simulator, clock, ids)
  const counts = { created: 0, updated: 0, deleted: 0, swept: 0 }
  for (const follow of vendor.follow) {
    const followed = await cycle(child, simulator, follow, clock)
    const least = follow.minimum(COUNTS, simulator, followed.asked)
    expect(followed.asked).toHaveLength(least)
    requests += followed.asked.length
    minimum += least
    for (const kind of Object.keys(counts) as (keyof typeof counts)[]) counts[kind] += followed.counts[kind] ?? 0
  }
  expect({ ...counts, deleted: counts.deleted + counts.swept }).toMatchObject({ created: COUNTS.created, updated: COUNTS.updated, deleted: COUNTS.deleted })
  expect(server.requests).toBe(requests)

  child.tell(JSON.stringify({ sync: null }))
  const { code, stderr, said } = await child.ended
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const peak = said.at(-1)!['peakMegabytes'] as number
  table.push({ vendor: name, 'records/s': Math.round(RECORDS / backfill.seconds), requests, minimum, 'peak MB': peak })
  expect(await differences(store, vendor, simulator)).toEqual([])
  expect(peak).toBeLessThan(PEAK_MAX_MEGABYTES)
}, 600_000)

interface Done {
  readonly asked: readonly LoggedRequest[]
  readonly counts: Readonly<Record<string, number>>
  readonly seconds: number
}

async function cycle(child: Child, simulator: VendorSimulator, { sync }: Cycle, clock: RunClock): Promise<Done> {
  simulator.requests.clear()
  const before = child.said.length
  child.tell(JSON.stringify({ sync, aheadMs: clock.aheadMs }))
  const done = await child.until('cycle', (said) => child.said.indexOf(said) >= before)
  expect(done).toMatchObject({ stopReason: 'complete' })
  expect(done).not.toHaveProperty('error')
  const asked = [...simulator.requests.entries]
  expect(asked.filter(({ status }) => status !== 200)).toEqual([])
  // No question is put twice, so no page is read twice; what asks for one record alone asks for a place or the time.
  const pages = asked.filter(({ query }) => query['limit'] !== '1')
  expect(new Set(pages.map(({ method, path, query, body }) => JSON.stringify([method, path, query, body]))).size).toBe(pages.length)
  return { asked, counts: done['counts'] as Done['counts'], seconds: done['seconds'] as number }
}

function fill(vendor: Vendor, simulator: VendorSimulator, clock: RunClock): string[] {
  const [firstMs, lastMs] = vendor.filledBeforeMs ?? [2 * 3_600_000, 3_600_000]
  const from = Date.now() - firstMs
  clock.stand(from)
  const fields = vendor.fields(simulator, RECORDS)
  const ids = Array.from({ length: RECORDS }, (_, n) => {
    clock.stand(from + Math.floor((n * (firstMs - lastMs)) / RECORDS))
    return simulator.create(vendor.type, fields(n))
  })
  clock.run(0)
  return ids
}

/** One a second, and then long enough ago for every source to believe it. */
function change(vendor: Vendor, simulator: VendorSimulator, clock: RunClock, ids: readonly string[]): void {
  const from = clock.now()
  const { updated, created } = COUNTS
  // Each another record, all over the list.
  const spread = ids.toSorted()
  for (let n = 0; n < CHANGES; n++) {
    clock.stand(from + 1_000 * (n + 1))
    const [id, first] = [spread[n * 7]!, ids[n]!]
    const { fields } = simulator.records.find(vendor.type, id)!
    if (n < updated) simulator.update(vendor.type, id, renamed(fields, n))
    else if (n < updated + created) simulator.create(vendor.type, simulator.records.find(vendor.type, first)!.fields)
    else simulator.remove(vendor.type, id)
  }
  clock.run(1_000 * (CHANGES + 60))
}

/** The last text of it is another one. */
function renamed(fields: Fields, n: number): Fields {
  const name = Object.keys(fields).filter((field) => /name|title|description/i.test(field)).at(-1)!
  return { [name]: `Changed ${n}` }
}

/** Keys whose row is not what the vendor holds, or is missing on one side. */
async function differences(url: string, vendor: Vendor, simulator: VendorSimulator): Promise<string[]> {
  const landed = vendor.landed ?? ((record: Fields) => record)
  const wanted = new Map(simulator.records.current(vendor.type).map(({ id }, n, all) => [id, { n, all }] as const))
  const truth = simulator.truth(vendor.type)
  const store = await openStore(url)
  const found: string[] = []
  try {
    for (let after: string | undefined; ;) {
      const rows = await store.rows({ database: 'records', limit: 5_000, ...(after !== undefined && { after }) })
      if (rows.length === 0) break
      for (const { key, text } of rows) {
        const at = wanted.get(key)
        wanted.delete(key)
        if (at === undefined || !isDeepStrictEqual(JSON.parse(text), JSON.parse(JSON.stringify(landed(truth[at.n]!))))) found.push(key)
      }
      after = rows.at(-1)!.key
    }
  } finally {
    await store.close()
  }
  return [...found, ...wanted.keys()].slice(0, 10)
}

/** This machine's, moved ahead by what need not be waited for; it stands still while the vendor's past is written. */
class RunClock implements Clock {
  aheadMs = 0
  #standing: number | null = null

  now(): number {
    return this.#standing ?? Date.now() + this.aheadMs
  }

  stand(atMs: number): void {
    this.#standing = atMs
  }

  run(aheadMs: number): void {
    this.#standing = null
    this.aheadMs = aheadMs
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, ms))
  }
}
