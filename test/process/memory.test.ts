import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildPackage, type Build } from './build.ts'
import { Child, killChildren } from './child.ts'
import { sqliteStand, type Stand } from './stand.ts'

/** Of the whole process: Node itself, the thread of the store, SQLite's cache, and one page being read while one lands. */
const PEAK_MAX_MEGABYTES = 150
const INPUT = { pages: 1_000, pageSize: 1_000, cycles: 2 }

let build: Build
let stand: Stand

beforeAll(async () => {
  build = await buildPackage()
  stand = sqliteStand()
})

afterAll(async () => {
  killChildren()
  await stand.remove()
  build.remove()
})

test.skipIf(process.platform !== 'linux')('XA13 a million records pass through a process that holds a page or two', async () => {
  const child = new Child(build, 'run-large.mjs', { input: { url: await stand.fresh(), ...INPUT }, nodeFlags: ['--max-old-space-size=96'] })
  const { code, said, stderr } = await child.ended
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const rows = INPUT.pages * INPUT.pageSize
  expect(said.filter(({ event }) => event === 'cycle')).toMatchObject([
    { stopReason: 'complete', counts: { created: rows } },
    { stopReason: 'complete', counts: { created: 0, unchanged: rows, swept: 0 } },
  ])
  console.info(`peak memory: ${said.at(-1)!['peakMegabytes'] as number} MB; by hundred pages: ${said.flatMap((line) => (line.event === 'at' ? [line['megabytes']] : [])).join(', ')}`)
  expect(said.at(-1)!['peakMegabytes']).toBeLessThan(PEAK_MAX_MEGABYTES)
}, 300_000)
