import { afterAll, beforeAll, expect, test } from 'vitest'
import { Stream } from '../../src/testing/simulation/random.ts'
import { serve, type LoggedRequest, type VendorSimulator } from '../../src/testing/simulators/index.ts'
import { buildPackage, type Build } from '../process/build.ts'
import { Child, killChildren } from '../process/child.ts'
import { sqliteStand, type Stand } from '../process/stand.ts'
import { change, differences, fill, RunClock } from './vendor-run.ts'
import { VENDORS, type Counts, type Cycle } from './vendors.ts'

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
  const ids = fill(vendor, simulator, clock, COUNTS)
  await using server = await serve(simulator)
  const store = await stand.fresh()
  const child = new Child(build, '../../runs/measured.mjs', { input: { vendor: name.split(' ')[0], url: server.url, store }, nodeFlags: [`--max-old-space-size=${HEAP_MEGABYTES}`] })

  const backfill = await cycle(child, simulator, vendor.backfill, clock)
  expect(backfill.counts).toMatchObject({ created: RECORDS })
  let requests = backfill.asked.length
  let minimum = vendor.backfill.minimum(COUNTS, simulator, backfill.asked)
  expect(requests).toBe(minimum)

  change(vendor, simulator, clock, ids, COUNTS)
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
