import { expect, test } from 'vitest'
import { Project } from './project.ts'

test('sim reports worlds, speed and faults; the same seeds give the same digest', async () => {
  const project = new Project()
  const first = await project.json('sim', '--seeds', '5')
  expect(first).toMatchObject({ seeds: 5, first_seed: 1, failures: [] })
  expect((await project.json('sim', '--seeds', '5'))['digest']).toBe(first['digest'])
  expect((await project.run('sim', '--seeds', '2', '--first-seed', '7')).stdout).toMatch(
    /^2 worlds from seed 7 · .+ per second · .+ faults injected/,
  )
})

test('sim --vendors runs the sources of known vendors, names them, and refuses others', async () => {
  const project = new Project()
  const { stdout, code } = await project.run('sim', '--vendors', 'airtable,stripe', '--seeds', '4')
  expect(stdout).toMatch(/^4 worlds from seed 1 · /)
  expect(stdout).toMatch(/\d × (airtable tasks replace|stripe (customers|invoices) (replace|delta|pair))/)
  expect(stdout).toMatch(/Digest [\da-f]{8}\./)
  expect(code).toBe(0)
  const unknown = await project.run('sim', '--vendors', 'stripes')
  expect(unknown.stderr).toMatch(/Unknown vendor "stripes"\. The vendors are salesforce, stripe, /)
  expect(unknown.code).toBe(2)
})

const LIST = 'const all = Array.from({ length: 12 }, (_, at) => ({ id: `k${at}` }))'

test('sim with a user’s worker lands the same rows despite every fault', async () => {
  const project = new Project()
  project.write(
    'good.mjs',
    `import { Worker } from 'tidemark'
${LIST}
const worker = new Worker({ name: 'good' })
worker.database('things')
worker.sync('list', { database: 'things', execute: async (state) => {
  const at = state?.at ?? 0
  return { changes: all.slice(at, at + 3).map((record) => ({ type: 'upsert', key: record.id, record })), hasMore: at + 3 < all.length, nextState: { at: at + 3 } }
} })
export default worker
`,
  )
  const { stdout, code: exitCode } = await project.run('sim', 'good.mjs', '--seeds', '40')
  expect(stdout).toMatch(/✓ list {2}12 rows in \d+ pages · 40 runs · \d+ faults/)
  expect(exitCode).toBe(0)
})

test('sim finds a worker that keeps its state in memory, and reports the seed', async () => {
  const project = new Project()
  project.write(
    'bad.mjs',
    `import { Worker } from 'tidemark'
${LIST}
const worker = new Worker({ name: 'bad' })
worker.database('things')
let place = 0
worker.sync('list', { database: 'things', mode: 'incremental', execute: async (state) => {
  if (state === undefined) place = 0
  const page = all.slice(place, place + 3)
  place += 3 // moves on whether or not the page lands
  return { changes: page.map((record) => ({ type: 'upsert', key: record.id, record })), hasMore: place < all.length, nextState: { place } }
} })
export default worker
`,
  )
  const { stdout, code: exitCode } = await project.run('sim', 'bad.mjs', '--seeds', '200')
  expect(stdout).toMatch(/✗ list/)
  expect(stdout).toMatch(/lands other rows|ends in another state/)
  expect(stdout).toMatch(/Reproduce: npx tidemark sim bad\.mjs --first-seed \d+ --seeds 1/)
  expect(exitCode).toBe(1)
})
