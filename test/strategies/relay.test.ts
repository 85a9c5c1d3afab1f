import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Change, Execute } from '../../src/contract/index.ts'
import type { CycleResult } from '../../src/engine/cycle-options.ts'
import {
  relay,
  relayNested,
  type PageInfo,
  type RelayNestedOptions,
  type RelayNestedState,
  type RelayState,
} from '../../src/strategies/index.ts'
import { HOUR, EngineFixture, SECOND } from '../engine/engine-fixture.ts'
import { runOn, runToEnd } from './run-strategy.ts'

let scene: EngineFixture

beforeEach(async () => {
  scene = await EngineFixture.open()
})
afterEach(() => scene.close())

const cycle = (execute: Execute<any>, choices: Parameters<typeof runOn>[2] = {}): Promise<CycleResult> =>
  runOn(scene, execute, { mode: 'replace', ...choices })

function upsert(key: string): Change {
  return { type: 'upsert', key, record: { key } }
}

/** A page of a list in the terms of a connection; cursors are opaque to all others. */
function connection(
  list: readonly string[],
  after: string | null,
  first: number,
): { nodes: readonly string[]; pageInfo: PageInfo } {
  const start = after === null ? 0 : Number(after.slice('cursor:'.length))
  const nodes = list.slice(start, start + first)
  return {
    nodes,
    pageInfo: {
      hasNextPage: start + first < list.length,
      endCursor: nodes.length === 0 ? null : `cursor:${start + nodes.length}`,
    },
  }
}

const names = (count: number, prefix = 'n'): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}${String(index).padStart(3, '0')}`)

/** The state that a strategy passes from page to page. */
function watched<State>(
  execute: Execute<State>,
  seen: Array<{ hasMore: boolean; nextState: State | undefined }>,
): Execute<State> {
  return async (state, context) => {
    const page = await execute(state, context)
    seen.push({ hasMore: page.hasMore, nextState: page.nextState })
    return page
  }
}

describe('a connection', () => {
  test('N60 is read by its own cursors until it says that nothing follows', async () => {
    const asked: Array<string | null> = []
    const execute = relay({
      read: async ({ after }) => {
        asked.push(after)
        const { nodes, pageInfo } = connection(names(250), after, 100)
        return { changes: nodes.map(upsert), pageInfo }
      },
    })
    expect(await cycle(execute)).toMatchObject({ stopReason: 'complete', pages: 3, counts: { created: 250 } })
    expect(asked).toEqual([null, 'cursor:100', 'cursor:200'])
  })

  test('N65 the last page leaves no state; an incremental sync keeps one that starts again', async () => {
    const seen: Array<{ hasMore: boolean; nextState: RelayState | undefined }> = []
    const execute = watched(
      relay({
        read: async ({ after }) => {
          const { nodes, pageInfo } = connection(names(3), after, 2)
          return { changes: nodes.map(upsert), pageInfo }
        },
      }),
      seen,
    )
    await cycle(execute)
    await cycle(execute, { mode: 'incremental', sync: 'other' })
    await cycle(execute, { mode: 'incremental', sync: 'other' })
    expect(seen).toEqual([
      { hasMore: true, nextState: { cursor: 'cursor:2', tally: { size: 2 } } },
      { hasMore: false, nextState: undefined },
      { hasMore: true, nextState: { cursor: 'cursor:2' } },
      { hasMore: false, nextState: { cursor: null } },
      { hasMore: true, nextState: { cursor: 'cursor:2' } },
      { hasMore: false, nextState: { cursor: null } },
    ])
  })

  test.each([
    [
      'a connection',
      (read: (after: string | null) => ReturnType<typeof connection>) =>
        relay({
          limit: 2,
          read: async ({ after }) => {
            const { nodes, pageInfo } = read(after)
            return { changes: nodes.map(upsert), pageInfo }
          },
        }),
    ],
    [
      'the outer one of two',
      (read: (after: string | null) => ReturnType<typeof connection>) =>
        relayNested({
          readOuter: async ({ after }) => {
            const { nodes, pageInfo } = read(after)
            return { changes: nodes.map(upsert), pageInfo, parents: nodes.map((id) => ({ id, pageInfo: null })) }
          },
          readInner: async () => ({ changes: [], parents: [] }),
        }),
    ],
  ])('T7 two ends of %s confirm each other after the same item', async (_, executeOf) => {
    const rows = names(6)
    const last = { hasNextPage: false, endCursor: null }
    const wrong = [
      { nodes: [], pageInfo: last },
      { nodes: rows.slice(2, 4), pageInfo: last },
    ]
    await cycle(executeOf((after) => connection(rows, after, 2)) as Execute<any>)
    const early = executeOf(
      (after) => (after === 'cursor:2' && wrong.shift()) || connection(rows, after, 2),
    ) as Execute<any>
    expect(await cycle(early, { allowDeletes: true })).toMatchObject({ stopReason: 'complete', counts: { swept: 0 } })
    expect(await scene.keys()).toEqual(rows)
  })

  test('XC15 an empty string is a cursor', async () => {
    const asked: Array<string | null> = []
    await cycle(
      relay({
        read: async ({ after }) => ({
          changes: ['one', 'other'].slice(0, 3 - asked.push(after)).map(upsert),
          pageInfo: { hasNextPage: after === null, endCursor: '' },
        }),
      }),
    )
    expect(asked).toEqual([null, ''])
  })

  test.each([
    ['has a next page and no cursor', { hasNextPage: true, endCursor: null }],
    ['says nothing', undefined],
    ['is cut off', { endCursor: 'x' }],
  ])('NX7 NX9 an answer that %s fails: half an answer is not the end', async (_, pageInfo) => {
    expect(await cycle(relay({ read: async () => ({ changes: [], pageInfo: pageInfo as PageInfo }) }))).toMatchObject({
      error: { code: 'SOURCE_INVALID' },
    })
  })

  test('a state that is not its own is refused', async () => {
    await expect(
      relay({ read: async () => ({ changes: [], pageInfo: { hasNextPage: false } }) })(
        { cursor: 7 as never },
        {} as never,
      ),
    ).rejects.toMatchObject({ code: 'CURSOR_REJECTED' })
  })
})

describe('a budget', () => {
  const paced = (budget: object, times: number[]): Execute<RelayState> =>
    relay({
      read: async ({ after }, { clock }) => {
        times.push(clock.now())
        const { nodes, pageInfo } = connection(names(7), after, 2)
        return { changes: nodes.map(upsert), pageInfo, budget: budget as { limit: number } }
      },
    })
  const gaps = (times: readonly number[]): number[] => times.slice(1).map((time, index) => time - times[index]!)

  test('N64 seen in an answer is kept in the state and spreads the pages that follow over its hour', async () => {
    const times: number[] = []
    const seen: Array<{ hasMore: boolean; nextState: RelayState | undefined }> = []
    await cycle(watched(paced({ limit: 1_800 }, times), seen))
    expect(gaps(times)).toEqual([2 * SECOND, 2 * SECOND, 2 * SECOND])
    expect(seen[0]!.nextState).toMatchObject({ pace: { limit: 1_800, paceMs: 2 * SECOND } })
  })

  test('N64 what a page costs, or what is left until when, counts where the source says so', async () => {
    const costly: number[] = []
    await cycle(paced({ limit: 1_800, cost: 3 }, costly))
    expect(gaps(costly)).toEqual(Array(3).fill(6 * SECOND))
    const left: number[] = []
    await cycle(
      paced(
        {
          limit: 5_000,
          remaining: 60,
          resetAt: new Date(scene.clock.now() + 5 * 60 * SECOND + 600 * SECOND).toISOString(),
        },
        left,
      ),
    )
    expect(gaps(left)[0]).toBe(10 * SECOND)
  })

  test('N64 holds across a broken off cycle, and does not wait for what has passed', async () => {
    const times: number[] = []
    await runToEnd(scene, paced({ limit: 1_800 }, times), { mode: 'replace', pagesMax: 1, afterMs: 500 })
    expect(gaps(times)).toEqual(Array(3).fill(2 * SECOND))
    times.length = 0
    await runToEnd(scene, paced({ limit: 1_800 }, times), {
      mode: 'replace',
      pagesMax: 1,
      afterMs: 5 * SECOND,
      sync: 'other',
    })
    expect(gaps(times)).toEqual(Array(3).fill(5 * SECOND))
  })

  test('that is used up is left to the engine to wait for', async () => {
    const times: number[] = []
    const result = await cycle(
      paced({ limit: 5_000, remaining: 0, resetAt: new Date(scene.clock.now() + HOUR).toISOString() }, times),
    )
    expect(result).toMatchObject({ stopReason: 'error', error: { code: 'RATE_LIMITED' } })
    expect(result.retryAt! - result.endedAt).toBeGreaterThan(50 * 60 * SECOND)
    expect(times).toHaveLength(1)
  })

  test('XC26 a clock that is set back does not make it wait longer than the pace', async () => {
    const times: number[] = []
    const execute = paced({ limit: 1_800 }, times)
    await cycle(execute, { pagesMax: 1 })
    expect(await cycle(execute, { pagesMax: 1, afterMs: -HOUR })).toMatchObject({ stopReason: 'max_pages' })
    expect(times[1]! - times[0]!).toBe(-HOUR + 2 * SECOND)
  })

  test.each([[{ limit: 0 }], [{ limit: Number.NaN }], [null]])('of nonsense (%o) paces nothing', async (budget) => {
    const times: number[] = []
    await cycle(paced(budget as { limit: number }, times))
    expect(gaps(times)).toEqual([0, 0, 0])
  })
})

describe('a connection inside a connection', () => {
  /** Repositories and how many issues each has. */
  class Forge {
    readonly repos = new Map<string, string[]>()
    readonly outerAsked: Array<string | null> = []
    readonly innerAsked: string[][] = []
    readonly first = { repos: 2, issues: 100 }

    readOuter: RelayNestedOptions['readOuter'] = async ({ after }) => {
      this.outerAsked.push(after)
      const { nodes, pageInfo } = connection([...this.repos.keys()], after, this.first.repos)
      const parents = nodes.map((id) => ({ id, ...connection(this.repos.get(id)!, null, this.first.issues) }))
      return { changes: parents.flatMap((parent) => parent.nodes.map(upsert)), pageInfo, parents }
    }

    readInner: RelayNestedOptions['readInner'] = async ({ parents }) => {
      this.innerAsked.push(parents.map(({ id }) => id))
      const found = parents.map(({ id, after }) => ({
        id,
        ...(this.repos.has(id)
          ? connection(this.repos.get(id)!, after, this.first.issues)
          : { nodes: [], pageInfo: null }),
      }))
      return { changes: found.flatMap((parent) => parent.nodes.map(upsert)), parents: found }
    }

    execute(options: Partial<RelayNestedOptions> = {}): Execute<RelayNestedState> {
      return relayNested({ readOuter: this.readOuter, readInner: this.readInner, ...options })
    }

    truth(): string[] {
      return [...this.repos.values()].flat().toSorted()
    }
  }

  let forge: Forge
  beforeEach(() => {
    forge = new Forge()
  })

  test('N61 N62 N63 N65 scenario 8: three repositories with 250, 40 and 120 issues; only unfinished ones are asked again', async () => {
    forge.repos.set('A', names(250, 'a')).set('B', names(40, 'b')).set('C', names(120, 'c'))
    const seen: Array<{ hasMore: boolean; nextState: RelayNestedState | undefined }> = []
    expect(await cycle(watched(forge.execute(), seen))).toMatchObject({
      stopReason: 'complete',
      counts: { created: 410, unchanged: 0 },
    })
    expect(await scene.keys()).toEqual(forge.truth())
    expect(forge.outerAsked).toEqual([null, 'cursor:2'])
    expect(forge.innerAsked).toEqual([['A'], ['A'], ['C']])
    expect(seen).toEqual([
      { hasMore: true, nextState: { cursor: 'cursor:2', nestedCursors: { A: 'cursor:100' }, tally: { size: 2 } } },
      { hasMore: true, nextState: { cursor: 'cursor:2', nestedCursors: { A: 'cursor:200' }, tally: { size: 2 } } },
      { hasMore: true, nextState: { cursor: 'cursor:2', tally: { size: 2 } } },
      {
        hasMore: true,
        nextState: { cursor: 'cursor:2', outerDone: true, nestedCursors: { C: 'cursor:100' }, tally: { size: 2 } },
      },
      { hasMore: false, nextState: undefined },
    ])
  })

  test('N63 it ends only when neither level has more', async () => {
    forge.repos.set('A', names(1)).set('B', [])
    expect(await cycle(forge.execute())).toMatchObject({ pages: 1 })
    forge.repos.set('B', names(101, 'b'))
    expect(await cycle(forge.execute())).toMatchObject({ pages: 2 })
    expect(await scene.keys()).toEqual(forge.truth())
  })

  test('N61 broken off after every page, it comes to the same', async () => {
    forge.repos
      .set('A', names(250, 'a'))
      .set('B', names(140, 'b'))
      .set('C', names(120, 'c'))
      .set('__proto__', names(210, 'p'))
    await runToEnd(scene, forge.execute(), { mode: 'replace', pagesMax: 1 })
    expect(await scene.keys()).toEqual(forge.truth())
  })

  test('N65 an incremental sync starts again each cycle', async () => {
    forge.repos.set('A', names(101, 'a')).set('B', []).set('C', [])
    const execute = forge.execute()
    await cycle(execute, { mode: 'incremental' })
    await cycle(execute, { mode: 'incremental' })
    expect(forge.outerAsked).toEqual([null, 'cursor:2', null, 'cursor:2'])
    expect(await scene.keys()).toEqual(forge.truth())
  })

  test('N62 many unfinished ones are asked in groups, each until it is done', async () => {
    forge.first.repos = 10
    for (let index = 0; index < 10; index++) forge.repos.set(`R${index}`, names(150 + index * 30, `r${index}-`))
    await cycle(forge.execute({ parentsPerRequest: 4 }))
    expect(await scene.keys()).toEqual(forge.truth())
    expect(Math.max(...forge.innerAsked.map((ids) => ids.length))).toBe(4)
    expect(forge.outerAsked).toHaveLength(1)
  })

  test('XC31 a repository that goes while its issues are read drops its cursor; one that comes is read when the outer pages get there', async () => {
    forge.repos.set('A', names(250, 'a')).set('B', names(140, 'b')).set('C', names(120, 'c'))
    const execute = forge.execute()
    await cycle(execute, { pagesMax: 1 })
    forge.repos.set('A', [])
    forge.repos.delete('B')
    forge.repos.set('D', names(110, 'd'))
    forge.first.repos = 1
    const again = await cycle(execute)
    expect(again).toMatchObject({ stopReason: 'complete', resumed: true })
    expect(forge.innerAsked[0]).toEqual(['A', 'B'])
    expect(forge.innerAsked.slice(1).flat()).not.toContain('B')
  })

  test('XC31 the map is bounded, and says so before it grows beyond', async () => {
    forge.first.repos = 4
    for (let index = 0; index < 4; index++) forge.repos.set(`R${index}`, names(150))
    expect(await cycle(forge.execute({ parentsMax: 3 }))).toMatchObject({
      error: { code: 'STATE_TOO_LARGE', message: expect.stringMatching(/4 parents.*limit is 3/) },
    })
  })

  test.each([
    ['leaves out a repository it was asked for', () => []],
    [
      'has one that was not asked for',
      () => [
        { id: 'A', pageInfo: { hasNextPage: false } },
        { id: 'Z', pageInfo: { hasNextPage: false } },
      ],
    ],
    [
      'has one twice',
      () => [
        { id: 'A', pageInfo: { hasNextPage: false } },
        { id: 'A', pageInfo: { hasNextPage: true, endCursor: 'x' } },
      ],
    ],
    ['has one that is cut off', () => [{ id: 'A', pageInfo: {} as PageInfo }]],
  ])('NX9 an answer that %s fails: a missing repository is not a finished one', async (_, parents) => {
    forge.repos.set('A', names(150, 'a'))
    const result = await cycle(forge.execute({ readInner: async () => ({ changes: [], parents: parents() }) }))
    expect(result).toMatchObject({ stopReason: 'error', error: { code: 'SOURCE_INVALID' } })
  })

  test('a repository without an id fails: its cursor could not be kept', async () => {
    const execute = forge.execute({
      readOuter: async () => ({
        changes: [],
        pageInfo: { hasNextPage: false },
        parents: [{ id: '', pageInfo: { hasNextPage: true, endCursor: 'x' } }],
      }),
    })
    expect(await cycle(execute)).toMatchObject({
      error: { code: 'SOURCE_INVALID', message: expect.stringMatching(/no id/) },
    })
  })

  test('XC31 as a control: a connector that takes silence for the end loses what was left out', async () => {
    forge.repos.set('A', names(150, 'a'))
    const trusting = forge.execute({
      readInner: async ({ parents }) => ({
        changes: [],
        parents: parents.map(({ id }) => ({ id, pageInfo: { hasNextPage: false } })),
      }),
    })
    await cycle(trusting)
    expect(await scene.keys()).toHaveLength(100)
  })

  test('N64 a budget on either level paces the next page of either', async () => {
    forge.repos.set('A', names(250, 'a'))
    const times: number[] = []
    const execute = forge.execute({
      readOuter: async (query, context) => {
        times.push(context.clock.now())
        return { ...(await forge.readOuter(query, context)), budget: { limit: 1_800 } }
      },
      readInner: async (query, context) => {
        times.push(context.clock.now())
        return forge.readInner(query, context)
      },
    })
    await cycle(execute)
    expect(times.slice(1).map((time, index) => time - times[index]!)).toEqual([2 * SECOND, 2 * SECOND])
  })

  test.each([[{ cursor: 1 }], [{ cursor: null, nestedCursors: { A: 1 } }]])(
    'a state that is not its own is refused: %o',
    async (stored) => {
      await expect(forge.execute()(stored as never, {} as never)).rejects.toMatchObject({ code: 'CURSOR_REJECTED' })
    },
  )
})
