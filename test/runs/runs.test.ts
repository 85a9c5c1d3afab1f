import { afterAll, beforeAll, expect, test } from 'vitest'
import { RandomStream } from '../../src/testing/simulation/random-stream.ts'
import { serve, type LoggedRequest, type VendorSimulator } from '../../simulators/src/index.ts'
import { buildPackage, type Build } from '../process/build.ts'
import { Child, killChildren } from '../process/child.ts'
import { createSqliteFixture, type ProcessStoreFixture } from '../process/process-store-fixture.ts'
import { change, differences, fill, RunClock } from './vendor-run.ts'
import { VENDORS, type Counts, type Cycle } from './vendors.ts'

/**
 * A full run of every vendor: its simulator behind a socket here; source, engine and SQLite in a separate process. `npm
 * run runs` does it at full size and prints the results. For HubSpot more than the 10,000 that a search returns at most;
 * for the others several pages.
 */
function countsOf(name: string): Counts {
  const records = Number(process.env['TIDEMARK_RUN_RECORDS'] ?? (name.startsWith('hubspot') ? 12_000 : 5_000))
  const changes = records / 10
  return { records, updated: changes * 0.8, created: changes * 0.1, deleted: changes * 0.1 }
}

/**
 * The parsed records alone would need more than the heap may have at full size; with all of Node a run peaks near 150.
 */
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
let stand: ProcessStoreFixture
const table: Figures[] = []

beforeAll(async () => {
  build = await buildPackage()
  stand = createSqliteFixture()
})

afterAll(async () => {
  killChildren()
  await stand.remove()
  build.remove()
  console.table(table)
})

test.skipIf(process.platform !== 'linux').each(VENDORS.map((vendor) => [vendor.name, vendor] as const))(
  '%s is copied and followed with few more requests than the minimum, in bounded memory',
  async (name, vendor) => {
    const clock = new RunClock()
    const simulator = vendor.make({ clock, random: new RandomStream(1, name) })
    const wanted = countsOf(name)
    const ids = fill(vendor, simulator, clock, wanted)
    await using server = await serve(simulator)
    const store = await stand.fresh()
    const child = new Child(build, '../../runs/measured.mjs', {
      input: { vendor: name.split(' ')[0], url: server.url, store },
      nodeFlags: [`--max-old-space-size=${HEAP_MEGABYTES}`],
    })

    const backfill = await cycle(child, simulator, vendor.backfill, clock)
    expect(backfill.counts).toMatchObject({ created: wanted.records })
    let requests = backfill.asked.length
    let minimum = vendor.backfill.minimum(wanted, simulator, backfill.asked)
    expect(requests).toBeGreaterThanOrEqual(minimum)
    expect(requests).toBeLessThanOrEqual(mostFor(name, minimum))

    change(vendor, simulator, clock, ids, wanted)
    const counts = { created: 0, updated: 0, deleted: 0, swept: 0 }
    for (const follow of vendor.follow) {
      const followed = await cycle(child, simulator, follow, clock)
      const least = follow.minimum(wanted, simulator, followed.asked)
      expect(followed.asked.length).toBeLessThanOrEqual(mostFor(name, least))
      requests += followed.asked.length
      minimum += least
      for (const kind of Object.keys(counts) as (keyof typeof counts)[]) counts[kind] += followed.counts[kind] ?? 0
    }
    expect({ ...counts, deleted: counts.deleted + counts.swept }).toMatchObject({
      created: wanted.created,
      updated: wanted.updated,
      deleted: wanted.deleted,
    })
    expect(server.requests).toBe(requests)

    child.tell(JSON.stringify({ sync: null }))
    const { code, stderr, said } = await child.ended
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const peak = said.at(-1)!['peakMegabytes'] as number
    table.push({
      vendor: name,
      'records/s': Math.round(wanted.records / backfill.seconds),
      requests,
      minimum,
      'peak MB': peak,
    })
    expect(await differences(store, vendor, simulator)).toEqual([])
    expect(peak).toBeLessThan(PEAK_MAX_MEGABYTES)
  },
  600_000,
)

/** Confirmed ends, lookups of a sample of absent records, and searches with too many results. */
function mostFor(name: string, least: number): number {
  return name === 'hubspot (import)' ? Math.ceil(1.1 * least) + 20 : Math.ceil(1.05 * least) + LOOKED_UP_MAX
}

const LOOKED_UP_MAX = 210
const REPEATED_MAX = 5

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
  // A lookup of a deleted record returns not found; a used cursor is refused when the end is confirmed.
  expect(asked.filter(({ status }) => ![200, 404, 422].includes(status))).toEqual([])
  // An end is confirmed by a second request; otherwise no page is read twice.
  const pages = asked.filter(({ query }) => query['limit'] !== '1')
  const questions = new Set(pages.map(({ method, path, query, body }) => JSON.stringify([method, path, query, body])))
  expect(pages.length - questions.size).toBeLessThanOrEqual(Math.max(REPEATED_MAX, pages.length / 2))
  return { asked, counts: done['counts'] as Done['counts'], seconds: done['seconds'] as number }
}
