import { expect, test } from 'vitest'
import type { Store } from '../../src/contract/index.ts'
import type { Build } from './build.ts'
import { Child, type ChildMessage } from './child.ts'
import { chance, World } from './children/world.mjs'
import { readStoreFacts } from './facts.ts'
import type { ProcessStoreFixture } from './process-store-fixture.ts'

const IS_LONG = process.env['TIDEMARK_LONG'] === '1'
const KILLS_MIN = IS_LONG ? 2_000 : 12
/** The smaller world takes 12 to 20 kills, and its deletes change twice. */
const WORLD = IS_LONG ? { keys: 240, steps: 20, pageSize: 16 } : { keys: 160, steps: 8, pageSize: 16 }

export function describeKills(build: () => Build, stand: () => ProcessStoreFixture): void {
  test(
    'XA2 XA3 XA5 XA8 XA13 killed at random times, a run ends as if it had never been interrupted',
    async () => {
      const seedOfAll = Number(process.env['TIDEMARK_SEED'] ?? 1)
      const score = { kills: 0, beforeOpen: 0, betweenCommitAndAck: 0, insideCycle: 0 }
      for (let seed = seedOfAll; score.kills < KILLS_MIN; seed++) await killThrough(build(), stand(), seed, score)
      console.info(`${stand().name}: ${JSON.stringify(score)}, seeds from ${seedOfAll}`)
      expect(score.insideCycle).toBeGreaterThan(0)
      expect(score.betweenCommitAndAck + score.beforeOpen).toBeGreaterThan(0)
    },
    IS_LONG ? 3_600_000 : 180_000,
  )
}

/** Hard deletes look the same except in the table. */
export function describeKillsWhileDeletesChange(build: () => Build, stand: () => ProcessStoreFixture): void {
  test(
    'XA3 killed at random times while deletes switch between soft and hard, a run ends as one that only ever deleted hard',
    async () => {
      const score = { kills: 0, beforeOpen: 0, betweenCommitAndAck: 0, insideCycle: 0 }
      for (let seed = 1; score.kills < KILLS_MIN / 2; seed++)
        await killThrough(build(), stand(), seed, score, { changesDeletes: true })
      console.info(`${stand().name}: ${JSON.stringify(score)}`)
      expect(score.insideCycle).toBeGreaterThan(0)
    },
    IS_LONG ? 3_600_000 : 180_000,
  )
}

interface Score {
  kills: number
  beforeOpen: number
  /** The page had landed and the caller had not been notified. */
  betweenCommitAndAck: number
  insideCycle: number
}

/** One world from its first step to its last, through as many kills as it takes. */
async function killThrough(
  build: Build,
  stand: ProcessStoreFixture,
  seed: number,
  score: Score,
  more: { changesDeletes?: boolean } = {},
): Promise<void> {
  const random = chance(seed)
  const url = await stand.fresh()
  const input = { url, seed, ...WORLD }
  for (let life = 1; ; life++) {
    // A process run that lands a page makes progress, and every second one does.
    expect(life).toBeLessThan(1_000)
    const child = new Child(build, 'run-steps.mjs', { input: { ...input, ...more } })
    await momentOf(random, child)
    const { signal, code, said, stderr } = await child.kill()
    if (signal !== 'SIGKILL')
      expect({ code, stderr, last: said.at(-1) }).toMatchObject({ code: 0, last: { event: 'done' } })
    await stand.settled(url)
    const durable = await stand
      .look(url, async (store) => ({ ...(await progressOf(store)), position: (await readStoreFacts(store)).position }))
      .catch((error: unknown) => {
        throw new Error(`seed ${seed}, run ${life}, after ${JSON.stringify(said.at(-1))}`, { cause: error })
      })
    checkAcknowledged(said, durable)
    if (signal !== 'SIGKILL') break
    score.kills++
    if (said.length === 0) score.beforeOpen++
    if (isInsideCycle(said)) score.insideCycle++
    if (durable.pages > pagesSaid(said, durable.step)) score.betweenCommitAndAck++
  }

  const twin = await stand.fresh()
  const unharmed = await new Child(build, 'run-steps.mjs', { input: { ...input, url: twin } }).ended
  expect(unharmed).toMatchObject({ code: 0 })
  const facts = await stand.look(url, readStoreFacts)
  expect(facts).toEqual(await stand.look(twin, readStoreFacts))
  // The result also equals the source, and not only an uninterrupted run.
  const truth = new World({ seed, keys: WORLD.keys }).truth(WORLD.steps - 1)
  expect(new Map(facts.rows['items']!.map(([key, text]) => [key, JSON.parse(text)]))).toEqual(
    new Map(truth.map(({ key, record }) => [key, record])),
  )
}

/** While it starts and opens the store; just after that; or around one of its commits. */
async function momentOf(random: () => number, child: Child): Promise<void> {
  const kind = random()
  if (kind < 0.2) return await pause(random() * 250)
  const over = child.ended.then(() => {})
  await Promise.race([
    over,
    child.until('open').then(
      () => {},
      () => {},
    ),
  ])
  if (kind < 0.4) return await pause(random() * 25)
  const pages = 1 + Math.floor(random() * 5)
  const nthLanded = (line: ChildMessage): number =>
    child.said.filter(({ event }) => event === 'landed').indexOf(line) + 1
  await Promise.race([
    over,
    child
      .until('landed', (line) => nthLanded(line) >= pages)
      .then(
        () => {},
        () => {},
      ),
  ])
  await pause(random() * 10)
}

interface Durable {
  readonly step: number
  /** Pages of the unfinished cycle. */
  readonly pages: number
}

async function progressOf(store: Store): Promise<Durable> {
  const checkpoints = await Promise.all(
    ['backfill', 'delta'].map((sync) => store.readCheckpoint({ worker: 'world', sync })),
  )
  return {
    step: checkpoints.reduce((sum, { version }) => sum + version, 0),
    pages: checkpoints.find(({ inflight }) => inflight !== null)?.inflight?.page ?? 0,
  }
}

/** Acknowledged pages are durable. */
function checkAcknowledged(said: readonly ChildMessage[], durable: Durable & { position: number }): void {
  const landed = said.findLast(({ event }) => event === 'landed') as
    | (ChildMessage & { step: number; page: number; position: number })
    | undefined
  if (landed !== undefined) {
    expect(durable.position).toBeGreaterThanOrEqual(landed.position)
    expect(
      durable.step > landed.step || (durable.step === landed.step && durable.pages >= landed.page),
      `${JSON.stringify(landed)} and ${JSON.stringify(durable)}`,
    ).toBe(true)
  }
  const completed = said.findLast(({ event }) => event === 'completed') as (ChildMessage & { step: number }) | undefined
  if (completed !== undefined) expect(durable.step).toBeGreaterThan(completed.step)
}

function pagesSaid(said: readonly ChildMessage[], step: number): number {
  const last = said.findLast((line) => (line.event === 'landed' || line.event === 'begun') && line['step'] === step)
  return (last?.['page'] as number | undefined) ?? Infinity
}

function isInsideCycle(said: readonly ChildMessage[]): boolean {
  return ['begun', 'landed'].includes(said.at(-1)?.event ?? '')
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
