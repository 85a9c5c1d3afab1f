import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chooseStrategy, type Answers } from '../../src/advisor/index.ts'
import { loadWorker } from '../../src/worker/load-worker.ts'
import type { WorkerLike } from '../../src/worker/worker.ts'
import { checkWorker } from '../../src/linter/index.ts'
import { MINUTE, EngineFixture, SECOND } from '../engine/engine-fixture.ts'
import { packagePaths } from '../setup/package-paths.ts'
import { everyFile, everyLeaf, nameOf } from './leaves.ts'
import { ToyApi } from './toy-api.ts'

const root = resolve(import.meta.dirname, '../..')
// Inside the checkout, so that the types of Node are found.
const folder = join(root, `node_modules/.cache/tidemark-advice-${process.pid}`)
const files = everyFile()

beforeAll(() => {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  for (const [text, answers] of files) writeFileSync(join(folder, `${nameOf(answers)}.ts`), text)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('N85 N86 N87: every leaf of the tree gives a worker that type-checks, all in one run of the compiler', () => {
  expect(everyLeaf().length).toBeGreaterThan(250)
  expect(files.size).toBeGreaterThan(80)
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      extends: join(root, 'tsconfig.json'),
      compilerOptions: {
        rootDir: root,
        rewriteRelativeImportExtensions: false,
        allowImportingTsExtensions: true,
        noUnusedLocals: true,
        noUnusedParameters: true,
        paths: packagePaths(),
        typeRoots: [join(root, 'node_modules/@types')],
      },
      include: [join(folder, '*.ts')],
      exclude: [],
    }),
  )
  const { stdout } = spawnSync(
    process.execPath,
    [join(root, 'node_modules/typescript/bin/tsc'), '-p', folder, '--listFiles'],
    { cwd: root, encoding: 'utf8' },
  )
  // Only the workers: other files of the program are checked elsewhere, by other rules.
  const lines = stdout.split('\n').filter((line) => line.includes('tidemark-advice'))
  expect(lines.filter((line) => line.includes('error'))).toEqual([])
  expect(lines).toHaveLength(files.size)
})

describe('every one of them loads, declares what is advised, and keeps a copy exact', () => {
  // How large a list is decides the schedule alone.
  const own = [...files.values()].filter(({ api, size }) => api === 'other' && size !== 'large')

  test.each(own.map((answers) => [nameOf(answers), answers] as const))('N80 N85 N86 N87: %s', async (name, answers) => {
    const { worker } = await loadWorker(`${name}.ts`, { folder })
    expectDeclared(worker, answers)
    await expectNoFault(worker, join(folder, `${name}.ts`), answers)
    if (chooseStrategy(answers).mode === 'pair') await followed(worker, answers)
    else await swept(worker, answers)
  })
})

test.each([
  'salesforce',
  'stripe',
  'hubspot',
  'github',
  'servicenow',
  'linear',
  'airtable',
  'bookmarks',
  'github-stars',
] as const)('N88 %s: the worker loads with the source that is here', async (api) => {
  const { worker } = await loadWorker(`${api}.ts`, { folder })
  expectDeclared(worker, { api })
})

function expectDeclared(worker: WorkerLike, answers: Answers): void {
  const { mode, delta } = chooseStrategy(answers)
  const syncs = worker.manifest.syncs.map((sync) => ({
    mode: sync.mode,
    pair: sync.pair,
    schedule: sync.schedule.kind,
  }))
  const pair = [
    { mode: 'replace', pair: 'backfill', schedule: delta?.strategy === 'frontier' ? 'interval' : 'manual' },
    { mode: 'incremental', pair: 'delta', schedule: 'interval' },
  ]
  expect(syncs).toEqual(mode === 'pair' ? pair : [{ mode: 'replace', pair: null, schedule: 'interval' }])
}

/** Also a proof that the linter has nothing against what is advised. */
async function expectNoFault(worker: WorkerLike, workerFile: string, answers: Answers): Promise<void> {
  const { scene, api } = await setUp(answers)
  const check = checkWorker(worker, {
    ports: scene.ports,
    secrets: { get: (name) => name },
    fetch: api.fetch,
    pagesMax: 20,
    workerFile,
  })
  const { findings, syncs } = await scene.clock.drive(check)
  expect(
    [...findings, ...syncs.flatMap((sync) => sync.findings)].filter(({ severity }) => severity !== 'note'),
  ).toEqual([])
  await scene.close()
}

/** A table of 230, 120 of them changed in the same moment unless that never happens. */
async function setUp(answers: Answers): Promise<{ scene: EngineFixture; api: ToyApi }> {
  const scene = await EngineFixture.open()
  const { deletes, delta } = chooseStrategy(answers)
  const api = new ToyApi({ isFlagged: deletes === 'reported' && delta!.strategy !== 'eventFeed' })
  const isUnique = answers.ties === 'no' || answers.order === 'unique'
  const from = scene.clock.now() - 10 * MINUTE
  for (let n = 0; n < 230; n++)
    api.put(String(1_000 + n), `item ${n}`, from + (n > 50 && n <= 170 && !isUnique ? 50 : n) * SECOND)
  return { scene, api }
}

async function namesIn(scene: EngineFixture): Promise<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(await scene.rows('items')).map(([key, record]) => [key, (record as { name: string }).name]),
  )
}

async function run(scene: EngineFixture, worker: WorkerLike, sync: string, api: ToyApi): Promise<void> {
  const plan = worker.plan(sync)
  const result = await scene.run({ ...plan, limits: { ...plan.limits, retriesMax: 0 } }, { fetch: api.fetch })
  expect(result).toMatchObject({ stopReason: 'complete', error: null })
}

async function swept(worker: WorkerLike, answers: Answers): Promise<void> {
  const { scene, api } = await setUp(answers)
  await run(scene, worker, 'items', api)
  expect(await namesIn(scene)).toEqual(api.names())
  api.drop('1003', scene.clock.now())
  api.put('1004', 'renamed', scene.clock.now())
  await run(scene, worker, 'items', api)
  expect(await namesIn(scene)).toEqual(api.names())
  await scene.close()
}

/** The backfill once, then nothing but the delta. */
async function followed(worker: WorkerLike, answers: Answers): Promise<void> {
  const { scene, api } = await setUp(answers)
  const { deletes, lagMs, delta } = chooseStrategy(answers)
  const expected = (): Record<string, string> => ({
    ...api.names(),
    ...(deletes === 'until-backfill' && { '1003': 'item 3' }),
  })
  await run(scene, worker, 'items-backfill', api)
  expect(await namesIn(scene)).toEqual(api.names())

  scene.clock.step(MINUTE)
  const now = scene.clock.now()
  api.drop('1003', now)
  api.put('1004', 'renamed', now + 1)
  api.put('1300', 'made', now + 2)
  if (lagMs !== null && delta!.strategy !== 'token') {
    await run(scene, worker, 'items', api)
    expect((await namesIn(scene))['1300'], 'too young to be sure of').toBeUndefined()
    // Shows only now, below what was there already.
    api.put('1005', 'late', now - lagMs / 2)
  }
  scene.clock.step(5 * MINUTE)
  // By turns: changes, deletions, and changes again.
  for (let cycle = 0; cycle < 1; cycle++) await run(scene, worker, 'items', api)
  expect(await namesIn(scene)).toEqual(expected())
  // And what no delta can know, the backfill finds, once the row is older than the source's lag.
  scene.clock.step(10 * MINUTE)
  await run(scene, worker, 'items-backfill', api)
  expect(await namesIn(scene)).toEqual(api.names())
  await scene.close()
}
