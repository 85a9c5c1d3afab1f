import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { loadWorker } from '../../src/worker/load-worker.ts'
import { checkWorker, FAULTS, type WorkerCheck } from '../../src/linter/index.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { WORKER_PAIRS, textOf, type WorkerDraft } from './workers.ts'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-linter-')))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const silent = { debug() {}, info() {}, warn() {}, error() {} }
let number = 0

async function checked(text: string, pagesMax = 20, syncs?: string[]): Promise<WorkerCheck> {
  const workerFile = join(folder, `worker-${++number}.mjs`)
  writeFileSync(workerFile, text)
  const { worker } = await loadWorker(workerFile)
  return checkWorker(worker, {
    ports: { clock: systemClock, random: { next: () => 0.5 }, log: silent },
    secrets: { get: (name) => name },
    pagesMax,
    workerFile,
    ...(syncs && { syncs }),
    fetch: async () => new Response('{}'),
  })
}

const ofThings = async (sketch: WorkerDraft, pagesMax?: number): Promise<WorkerCheck['syncs'][number]> =>
  (await checked(textOf(sketch), pagesMax, ['things'])).syncs[0]!

describe.each(WORKER_PAIRS.map((twins, index) => [index + 1, twins] as const))(
  'NX16 the checklist, %i',
  (_, { word, severity, faulty, good, pagesMax }) => {
    test(`${FAULTS[word].rule} ${word} is found, as ${severity}, and nothing besides`, async () => {
      const { findings } = await ofThings(faulty, pagesMax)
      expect(findings.map(({ finding, severity }) => [finding, severity])).toEqual([[word, severity]])
    })

    test(`${word} is not found where it is not`, async () => {
      const { findings } = await ofThings(good, pagesMax)
      expect(findings).toEqual([])
    })
  },
)

test('a pair whose anchor changes the source is not asked for it, and a delta without a place is no fault', async () => {
  const { syncs } = await checked(`import { SyncError, Worker } from 'tidemark'
const worker = new Worker()
const upsert = (key) => ({ type: 'upsert', key, record: { key }, upstreamUpdatedAt: '2026-01-31T12:00:00Z' })
worker.track('things', { database: worker.database('things'), source: {
  anchor: async () => { throw new Error('the slot is gone now') },
  backfill: async () => ({ changes: [upsert('a')], hasMore: false }),
  delta: async (state) => {
    if (state === undefined) throw new SyncError('HISTORY_LOST', 'There is no place yet.')
    return { changes: [], hasMore: false, nextState: state }
  },
} })
export default worker
`)
  expect(syncs.map(({ sync, findings, changes }) => [sync, findings, changes])).toEqual([
    ['things-backfill', [], 1],
    ['things', [], 0],
  ])
})

test.each([
  ['NX7 positions that repeat, and pages without one', ['state-stuck', 'page-malformed']],
  ['NX12 keys that name two records, or change from reading to reading', ['key-not-unique', 'key-unstable']],
] as const)('%s are errors, and fail the check', (_, words) => {
  for (const word of words)
    expect([
      FAULTS[word].severity,
      WORKER_PAIRS.some((twins) => twins.word === word && twins.severity === 'error'),
    ]).toEqual(['error', true])
})

test('every fault has a worker that shows it', () => {
  expect(new Set(WORKER_PAIRS.map(({ word }) => word))).toEqual(
    new Set(Object.keys(FAULTS).filter((word) => word !== 'secret-in-code')),
  )
})

test('every fault has a rule of the page, and a fix', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/reference/rules.md'), 'utf8')
  for (const [word, { rule, todo }] of Object.entries(FAULTS)) {
    expect(page, word).toContain(`\n| ${rule} |`)
    expect(todo, word).toMatch(/^[A-Z].{20,}\.$/)
  }
})

test('NX16 a secret in the code is detected by its format, and reported only by its line', async () => {
  // In two pieces, so that this file holds none.
  const secret = ['sk', 'live', '4eC39HqLyjWDarjtT1zdp7dc'].join('_')
  const { findings } = await checked(
    `const key = '${secret}'\n${textOf({ execute: 'return { changes: [], hasMore: false }', mode: 'replace' })}`,
  )
  expect(findings).toMatchObject([
    { finding: 'secret-in-code', severity: 'error', seen: 'Line 1 of the worker contains what looks like a secret.' },
  ])
  const { findings: none } = await checked(
    `const key = (context) => context.secrets.get('STRIPE_SECRET_KEY_LIVE_2024')\n${textOf({ execute: 'return { changes: [], hasMore: false }', mode: 'replace' })}`,
  )
  expect(none).toEqual([])
})

test('invariant 10: no finding shows a state, a key or a record', async () => {
  for (const { faulty, pagesMax } of WORKER_PAIRS) {
    const { findings } = await ofThings(
      {
        ...faulty,
        above: `${faulty.above ?? ''}\nfor (const one of all) { one.id = 'kestrel' + one.id; one.name = 'kestrel' + one.name }\n`,
      },
      pagesMax,
    )
    expect(JSON.stringify(findings)).not.toContain('kestrel')
  }
})

test('a finding suppressed by a comment is reported as ignored, for that sync only', async () => {
  const text = textOf({
    execute: 'return { changes: all.map(upsert), hasMore: false, nextState: { since: context.clock.now() } }',
    below: ' ',
  })
  const {
    syncs: [plain],
  } = await checked(text)
  expect(plain!.findings.map(({ finding }) => finding)).toEqual(['starts-over', 'no-lag', 'missing-deletes'])
  const {
    syncs: [sparing],
  } = await checked(
    `${text}// tidemark-ignore things: missing-deletes, no-lag\n// tidemark-ignore others: starts-over\n`,
  )
  expect([sparing!.findings.map(({ finding }) => finding), sparing!.ignored.map(({ finding }) => finding)]).toEqual([
    ['starts-over'],
    ['no-lag', 'missing-deletes'],
  ])
})

test('a clock access in the worker is reported with file and line', async () => {
  const globals = [Date.now, Math.random, fetch]
  const { findings } = await ofThings({
    execute: '\n\nconst now = Date.now()\nreturn { changes: [], hasMore: false, nextState: state ?? { a: 1 } }',
  })
  expect(findings.find(({ finding }) => finding === 'reads-wall-clock')!.seen).toMatch(/ in worker-\d+\.mjs:\d+\.$/)
  // And the globals are as they were.
  expect([Date.now, Math.random, fetch]).toEqual(globals)
})
