import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { frontier } from '../../src/strategies/index.ts'
import { HOUR, MINUTE, EngineFixture } from '../engine/engine-fixture.ts'
import { createLoader } from '../planted/create-loader.ts'
import { patchText } from '../planted/patch-text.ts'
import { runCampaign, type Conditions } from './frontier-world.ts'
import { NewestFirst, numbered, type Entry } from './newest-first.ts'
import { runOn, stateOn } from './run-strategy.ts'

type Frontier = typeof frontier

/** A defect of the first design, planted back. */
export interface FrontierMutant {
  readonly name: string
  readonly patches: ReadonlyArray<{
    readonly file: 'frontier.ts' | 'kit/frontier-anchors.ts'
    readonly from: string
    readonly to: string
  }>
  /** The fault of this frontier, and the number of worlds that found it; null when there is none. */
  find(make: Frontier, worldsMax?: number): Promise<Finding | null>
}

interface Finding {
  readonly message: string
  readonly worlds: number
}

/** The first world in which something is missing, or too much. */
const worlds =
  (seeds: number, overrides: Partial<Conditions>) =>
  async (make: Frontier, worldsMax = seeds): Promise<Finding | null> => {
    const {
      failures: [first],
      worlds: played,
    } = await runCampaign(worldsMax, make, {
      overrides: { operations: 40, rates: {}, earlyEndShare: 0, gapMs: 2 * MINUTE, ...overrides },
    })
    return first === undefined ? null : { message: `seed ${first.seed}: ${first.broken}`, worlds: played }
  }

export const MUTANTS: readonly FrontierMutant[] = [
  {
    name: 'SD1 the head is promoted on the first page of a pass',
    patches: [
      {
        file: 'frontier.ts',
        from: '{ ...state, ...restart, pass: nextPass',
        to: '{ ...state, ...restart, ...toHeadState(pending), anchors, pass: nextPass',
      },
    ],
    find: worlds(40, { tokenMs: 10 * MINUTE, pagesMax: 2, burstShare: 0.2, offlineShare: 0.3, verifies: false }),
  },
  {
    name: 'SD2 a budget that runs out ends the pass',
    patches: [
      {
        file: 'frontier.ts',
        from: ': isCaughtUp(search) ?',
        to: ': isCaughtUp(search) || context.cycle.page % 2 === 0 ?',
      },
    ],
    find: worlds(40, { pagesMax: 2, burstShare: 0.2, tokenMs: Number.POSITIVE_INFINITY, verifies: false }),
  },
  {
    name: 'SD3 a source that leaves the anchor out and says so is not heard',
    patches: [
      { file: 'frontier.ts', from: 'reachedSince || hasReachedAnchors(search)', to: 'hasReachedAnchors(search)' },
    ],
    find: (make) =>
      onList(async (list, run) => {
        const cutting = make<Entry>(async (context) => {
          const page = list.read(context)
          const at = page.items.findIndex(({ id }) => id === context.sinceItemId)
          return at === -1 ? page : { items: page.items.slice(0, at), nextCursor: null, reachedSince: true }
        }, OPTIONS)
        await run(cutting)
        await run(cutting)
        return (await run(cutting)).pages === 1 ? null : 'a list in which nothing is new takes more than a page'
      }),
  },
  {
    name: 'SD4 a page of known items ends backfill',
    patches: [
      {
        file: 'frontier.ts',
        from: 'phase, anchors, ...toTailState(nextCursor)',
        to: 'phase, anchors, ...toTailState(anchors === state.anchors ? null : nextCursor)',
      },
    ],
    find: worlds(60, { items: 60, tokenMs: 10 * MINUTE, pagesMax: 3, anchorsMax: 500, verifies: false }),
  },
  {
    name: 'SD4 a missing cursor is taken for the end',
    patches: [
      {
        file: 'frontier.ts',
        from: "if (nextCursor !== null && typeof nextCursor !== 'string') throw",
        to: "if (typeof nextCursor !== 'string') nextCursor = null\n    if (nextCursor === 0 as never) throw",
      },
    ],
    find: (make) =>
      onList(async (list, run) => {
        const forgetful = make<Entry>(
          async (context) => ({
            ...list.read(context),
            ...(context.phase === 'backfill' && { nextCursor: undefined as never }),
          }),
          OPTIONS,
        )
        return (await run(forgetful)).stopReason === 'error' ? null : 'the tail is complete after its first page'
      }),
  },
  {
    name: 'SD4 backfill believes an end at once',
    patches: [
      {
        file: 'frontier.ts',
        from: 'if (nextCursor === null && !isEndConfirmed(ending, getLastFingerprint(fingerprints))) {',
        to: 'if (nextCursor === null && false) {',
      },
    ],
    find: worlds(20, { items: 60, earlyEndShare: 0.2, pagesMax: 100_000, verifies: false }),
  },
  {
    name: 'SD4 a forward pass believes an end at once',
    patches: [
      {
        file: 'frontier.ts',
        from: "if (reason === 'end_of_data' && !isEndConfirmed(ending, getLastFingerprint(fingerprints))) {",
        to: "if (reason === 'end_of_data' && false) {",
      },
    ],
    find: worlds(40, {
      burstShare: 0.2,
      earlyEndShare: 0.2,
      pagesMax: 100_000,
      offlineShare: 0.3,
      verifies: false,
      cuts: false,
    }),
  },
  {
    name: 'invariant 12 an end above everything that is known makes anchors',
    patches: [
      {
        file: 'frontier.ts',
        from: "state.anchors !== '' && search.rank === -1",
        to: "state.anchors !== '' && search.rank === -2",
      },
    ],
    find: (make) =>
      onList(async (list, run) => {
        const plain = make<Entry>(async (context) => list.read(context), OPTIONS)
        await run(plain)
        list.add(...numbered('b', 25))
        let requests = 0
        await run(
          make<Entry>(async (context) => {
            const page = list.read(context)
            return ++requests === 1 ? page : { items: page.items.slice(0, 4), nextCursor: null }
          }, OPTIONS),
        )
        const { counts } = await run(plain)
        return counts.created === 11 ? null : `of 11 hidden items ${counts.created} were found`
      }),
  },
  {
    name: 'SD5 any other item becomes the head, also an older one',
    patches: [
      {
        file: 'frontier.ts',
        from: 'return isOlderOrder(pending.order, head?.order) ? head : pending',
        to: 'return pending',
      },
    ],
    find: (make) =>
      onList(async (list, run, state) => {
        const ordered = make<Entry>(async (context) => list.read(context), { ...OPTIONS, order: ({ at }) => at })
        await run(ordered)
        list.remove('a35')
        await run(ordered)
        const { headItemId } = await state()
        return headItemId === 'a35' ? null : `the head went back to ${headItemId}`
      }),
  },
  {
    name: 'SD6 a sweep does not look at the top again',
    patches: [
      {
        file: 'frontier.ts',
        from: "const isDone = nextCursor === null && (context.cycle.mode === 'incremental' || tailCursor === undefined)",
        to: 'const isDone = nextCursor === null',
      },
    ],
    find: worlds(60, {
      moveShare: 0.4,
      removeShare: 0,
      purgeShare: 0,
      cuts: false,
      verifies: true,
      pagesMax: 100_000,
      minutesMax: 0,
      items: 60,
      gapMs: 10_000,
      refreshMs: HOUR,
      limit: 5,
    }),
  },
  {
    name: 'T9 one anchor is enough, wherever it stands',
    patches: [{ file: 'kit/frontier-anchors.ts', from: 'const ANCHOR_RUN_MIN = 5', to: 'const ANCHOR_RUN_MIN = 1' }],
    find: worlds(60, { moveShare: 0.3, ordered: false, cuts: false, verifies: false, offlineShare: 0.3 }),
  },
  {
    name: 'XC30 a forward pass takes the tail along',
    patches: [
      {
        file: 'frontier.ts',
        from: '{ ...state, ...restart, pass: nextPass',
        to: '{ ...state, ...restart, ...toTailState(nextCursor), pass: nextPass',
      },
    ],
    find: (make) =>
      onList(async (list, run, state) => {
        const plain = make<Entry>(async (context) => list.read(context), OPTIONS)
        await run(plain, 3)
        list.add(...numbered('b', 25))
        await run(plain, 2)
        const before = (await state()).tailCursor
        await run(plain, 1)
        return (await state()).tailCursor === before ? null : 'a forward pass moved the tail'
      }),
  },
]

const OPTIONS = {
  id: ({ id }: Entry) => id,
  toChange: ({ id }: Entry) => ({ type: 'upsert' as const, key: id, record: { id } }),
}

/** A small scene: 35 items in pages of ten, runs an hour apart. */
async function onList(
  play: (
    list: NewestFirst,
    run: (execute: ReturnType<typeof frontier<Entry>>, pagesMax?: number) => ReturnType<typeof runOn>,
    state: () => Promise<{ headItemId?: string; tailCursor?: string }>,
  ) => Promise<string | null>,
): Promise<Finding | null> {
  const scene = await EngineFixture.open()
  try {
    const message = await play(
      new NewestFirst(scene.clock, ...numbered('a', 35)),
      (execute, pagesMax = 1_000) => runOn(scene, execute, { afterMs: HOUR, pagesMax }),
      async () => JSON.parse((await scene.checkpoint()).inflight?.state ?? JSON.stringify(await stateOn(scene))),
    )
    return message === null ? null : { message, worlds: 1 }
  } finally {
    await scene.close()
  }
}

const ROOT = resolve(import.meta.dirname, '../..')

/** The strategy with the patches applied, from a copy of its own. */
export async function loadFrontier(patches: FrontierMutant['patches']): Promise<{ make: Frontier } & AsyncDisposable> {
  const folder = await mkdtemp(join(tmpdir(), 'tidemark-frontier-'))
  for (const part of ['contract', 'values', 'strategies'])
    await cp(join(ROOT, 'src', part), join(folder, 'src', part), { recursive: true })
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  for (const { file, from, to } of patches) {
    const path = join(folder, 'src/strategies', file)
    const source = await readFile(path, 'utf8')
    await writeFile(path, patchText(source, from, to))
  }
  const { frontier: make } = await createLoader(import.meta.url, { moduleCache: false }).import<{
    frontier: Frontier
  }>(join(folder, 'src/strategies/frontier.ts'))
  return { make, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) }
}
