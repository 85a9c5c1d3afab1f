import { describe, expect, test } from 'vitest'
import type { Page, SyncContext } from '../../src/contract/index.ts'
import { streams, type StreamsState } from '../../src/strategies/index.ts'

interface States {
  changes: number
  deletes: number
  audit: number
}

type State = StreamsState<States>

const CONTEXT = { cycle: { id: 1, mode: 'incremental', startedAt: 0, page: 1 } } as SyncContext
const T = (minute: number): string => `2026-01-01T00:${String(minute).padStart(2, '0')}:00.000000Z`
const page = (more: Partial<Page<number>> = {}): Page<number> => ({ changes: [], hasMore: false, ...more })

/** Three streams that answer call by call, and note the states they are asked with. */
function threeStreams(answers: Record<keyof States, Array<Page<number>>>) {
  const asked: Array<[string, number | undefined]> = []
  const stream = (name: keyof States) => async (state: number | undefined) => {
    asked.push([name, state])
    return answers[name].shift()!
  }
  const execute = streams<States>({ changes: stream('changes'), deletes: stream('deletes'), audit: stream('audit') })
  return { asked, execute: (state?: State) => execute(state, CONTEXT) }
}

/** Reads a cycle to its end. */
async function cycle(execute: (state?: State) => Promise<Page<State>>, from?: State): Promise<Array<Page<State>>> {
  const pages: Array<Page<State>> = []
  let state = from
  do {
    pages.push(await execute(state))
    state = pages.at(-1)!.nextState
  } while (pages.at(-1)!.hasMore)
  return pages
}

describe('several streams in one cycle', () => {
  test('are read one after the other, each to its end and from its own state', async () => {
    const source = threeStreams({
      changes: [page({ hasMore: true, nextState: 1 }), page({ nextState: 2 }), page({ nextState: 3 })],
      deletes: [page({ nextState: 10 }), page({ nextState: 11 })],
      audit: [page({ nextState: 20 }), page({ nextState: 21 })],
    })
    const first = await cycle(source.execute)
    expect(source.asked).toEqual([
      ['changes', undefined],
      ['changes', 1],
      ['deletes', undefined],
      ['audit', undefined],
    ])
    expect(first.map(({ hasMore }) => hasMore)).toEqual([true, true, true, false])
    expect(first.map(({ nextState }) => nextState!.reading)).toEqual(['changes', 'deletes', 'audit', undefined])
    expect(first.at(-1)!.nextState!.states).toEqual({ changes: 2, deletes: 10, audit: 20 })
    source.asked.length = 0
    const second = await cycle(source.execute, first.at(-1)!.nextState)
    expect(source.asked).toEqual([
      ['changes', 2],
      ['deletes', 10],
      ['audit', 20],
    ])
    expect(second.at(-1)!.nextState!.states).toEqual({ changes: 3, deletes: 11, audit: 21 })
  })

  test('a stream that ends without a state keeps the one it had', async () => {
    const source = threeStreams({ changes: [page()], deletes: [page({ nextState: 11 })], audit: [page()] })
    const last = (await cycle(source.execute, { states: { changes: 2, deletes: 10 } })).at(-1)!
    expect(last.nextState!.states).toEqual({ changes: 2, deletes: 11 })
  })

  test('a stream that says there is more without a state is not hidden by the state it had', async () => {
    const source = threeStreams({ changes: [page({ hasMore: true })], deletes: [], audit: [] })
    expect(await source.execute({ states: { changes: 2 } })).toMatchObject({ hasMore: true, nextState: undefined })
  })

  test('invariant 12: the tidemark is the earliest of all streams, and none while one has stated none', async () => {
    const source = threeStreams({
      changes: [page({ tidemark: T(9) }), page({ tidemark: T(20) })],
      deletes: [page({ tidemark: T(5) }), page()],
      audit: [page({ tidemark: T(7) }), page({ tidemark: T(21) })],
    })
    const first = await cycle(source.execute)
    expect(first.map(({ tidemark }) => tidemark)).toEqual([undefined, undefined, T(5)])
    // A stream that states nothing this time is complete up to what it stated last.
    const second = await cycle(source.execute, first.at(-1)!.nextState)
    expect(second.map(({ tidemark }) => tidemark)).toEqual([T(5), T(5), T(5)])
  })

  test('a state that names another stream, or none at all, is refused', async () => {
    const source = threeStreams({ changes: [], deletes: [], audit: [] })
    for (const state of [{ states: {}, reading: 'gone' }, { states: null }, { states: 7 }]) {
      await expect(source.execute(state as unknown as State)).rejects.toMatchObject({ code: 'CURSOR_REJECTED' })
    }
    expect(source.asked).toEqual([])
  })

  test('the state of a flipFlop goes on with both cursors; one of three streams refuses it', async () => {
    const asked: unknown[] = []
    const stream = async (state: unknown) => (asked.push(state), page({ nextState: 5 }))
    const two = streams<Pick<States, 'changes' | 'deletes'>>({ changes: stream, deletes: stream })
    const old = { phase: 'deletes', deltaCursor: 2, deletesCursor: 10 } as never
    const first = await two(old, CONTEXT)
    await two(first.nextState, CONTEXT)
    expect(asked).toEqual([2, 10])
    await expect(threeStreams({ changes: [], deletes: [], audit: [] }).execute(old)).rejects.toMatchObject({
      code: 'CURSOR_REJECTED',
    })
  })

  test('the anchor has a part of every stream that gives one', async () => {
    const anchored = (anchor: number | undefined) => Object.assign(async () => page(), { anchor: async () => anchor })
    const all = streams<States>({ changes: anchored(1), deletes: anchored(2), audit: async () => page() })
    expect(await all.anchor(CONTEXT)).toEqual({ states: { changes: 1, deletes: 2 } })
    expect(
      await streams<States>({
        changes: anchored(undefined),
        deletes: anchored(undefined),
        audit: async () => page(),
      }).anchor(CONTEXT),
    ).toBeUndefined()
  })
})
