import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildPackage, type Build } from './build.ts'
import { Child, killChildren } from './child.ts'
import { createSqliteFixture, type ProcessStoreFixture } from './process-store-fixture.ts'

/**
 * The whole process: Node itself about 45 MB, the thread of the store 25, SQLite's cache 16, and a heap of 50 to 70 in
 * which one page is read while another lands. It peaks between 137 and 159; the garbage collection is up to Node.
 */
const PEAK_MAX_MEGABYTES = 175
/** Between the first hundred thousand records and the last. */
const GROWTH_MAX_MEGABYTES = 35
/** A million records with TIDEMARK_LONG=1; growth shows in a fifth of them. */
const PAGES = process.env['TIDEMARK_LONG'] === '1' ? 1_000 : 200
const INPUT = { pages: PAGES, pageSize: 1_000, cycles: 2 }

let build: Build
let stand: ProcessStoreFixture

beforeAll(async () => {
  build = await buildPackage()
  stand = createSqliteFixture()
})

afterAll(async () => {
  killChildren()
  await stand.remove()
  build.remove()
})

test.skipIf(process.platform !== 'linux')(
  'XA13 hundreds of thousands of records pass through a process that holds one or two pages',
  async () => {
    const child = new Child(build, 'run-large.mjs', {
      input: { url: await stand.fresh(), ...INPUT },
      nodeFlags: ['--max-old-space-size=96'],
    })
    const { code, said, stderr } = await child.ended
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const rows = INPUT.pages * INPUT.pageSize
    expect(said.filter(({ event }) => event === 'cycle')).toMatchObject([
      { stopReason: 'complete', counts: { created: rows } },
      { stopReason: 'complete', counts: { created: 0, unchanged: rows, swept: 0 } },
    ])
    const sizes = said.flatMap((line) => (line.event === 'at' ? [line['megabytes'] as number] : []))
    console.info(`peak memory: ${said.at(-1)!['peakMegabytes'] as number} MB; by hundred pages: ${sizes.join(', ')}`)
    expect(said.at(-1)!['peakMegabytes']).toBeLessThan(PEAK_MAX_MEGABYTES)
    expect(Math.max(...sizes) - sizes[0]!).toBeLessThan(GROWTH_MAX_MEGABYTES)
  },
  600_000,
)
