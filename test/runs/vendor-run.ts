import { isDeepStrictEqual } from 'node:util'
import { openStore } from '../../src/stores/open-store.ts'
import type { Clock } from '../../src/contract/index.ts'
import type { Fields, VendorSimulator } from '../../simulators/src/index.ts'
import type { Counts, Vendor } from './vendors.ts'

export function fill(vendor: Vendor, simulator: VendorSimulator, clock: RunClock, { records }: Counts): string[] {
  const [firstMs, lastMs] = vendor.filledBeforeMs ?? [2 * 3_600_000, 3_600_000]
  const from = Date.now() - firstMs
  clock.stand(from)
  const fields = vendor.fields(simulator, records)
  const ids = Array.from({ length: records }, (_, n) => {
    clock.stand(from + Math.floor((n * (firstMs - lastMs)) / records))
    return simulator.create(vendor.type, fields(n))
  })
  clock.run(0)
  return ids
}

/** One a second, and then long enough ago to be outside every source's lag. */
export function change(
  vendor: Vendor,
  simulator: VendorSimulator,
  clock: RunClock,
  ids: readonly string[],
  { updated, created, deleted }: Counts,
): void {
  const from = clock.now()
  const changes = updated + created + deleted
  // Each a different record, all over the list.
  const spread = ids.toSorted()
  for (let n = 0; n < changes; n++) {
    clock.stand(from + 1_000 * (n + 1))
    const [id, first] = [spread[(n * 7) % spread.length]!, ids[n]!]
    const { fields } = simulator.records.find(vendor.type, id)!
    if (n < updated) simulator.update(vendor.type, id, renamed(fields, n))
    else if (n < updated + created) simulator.create(vendor.type, simulator.records.find(vendor.type, first)!.fields)
    else simulator.remove(vendor.type, id)
  }
  clock.run(1_000 * (changes + 60))
}

/** Changes its last text field. */
function renamed(fields: Fields, n: number): Fields {
  const name = Object.keys(fields)
    .filter((field) => /name|title|description/i.test(field))
    .at(-1)!
  return { [name]: `Changed ${n}` }
}

/** Keys whose row differs from the vendor's record, or is missing on one side. */
export async function differences(url: string, vendor: Vendor, simulator: VendorSimulator): Promise<string[]> {
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
        if (at === undefined || !isDeepStrictEqual(JSON.parse(text), JSON.parse(JSON.stringify(landed(truth[at.n]!)))))
          found.push(key)
      }
      after = rows.at(-1)!.key
    }
  } finally {
    await store.close()
  }
  return [...found, ...wanted.keys()].slice(0, 10)
}

/** This machine's clock, moved ahead instead of waiting; it is stopped while the vendor's history is written. */
export class RunClock implements Clock {
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
