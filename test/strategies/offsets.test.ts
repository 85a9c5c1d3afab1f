import { describe, expect, test } from 'vitest'
import { SyncError, type Mode, type SyncContext } from '../../src/contract/index.ts'
import { offsets, type OffsetsOptions, type OffsetsState } from '../../src/strategies/offsets.ts'

/** A log in memory: partitions of texts, some of which are no longer retained. */
class ToyLog {
  readonly partitions: string[][]
  readonly low: number[]
  readonly asked: string[] = []
  /** Before each answer. */
  onRead: () => void = () => {}

  constructor(...partitions: string[][]) {
    this.partitions = partitions
    this.low = partitions.map(() => 0)
  }

  options(limit = 2): OffsetsOptions<{ place: string; text: string }> {
    return {
      bounds: async () =>
        Object.fromEntries(
          this.partitions.map((texts, at) => [at, { low: String(this.low[at] ?? 0), end: String(texts.length) }]),
        ),
      read: async ({ from, until }) => {
        this.onRead()
        this.asked.push(Object.keys(from).join(','))
        const messages: { place: string; text: string }[] = []
        const next: Record<string, string> = {}
        for (const [partition, offset] of Object.entries(from)) {
          let at = Number(offset)
          if (at < (this.low[Number(partition)] ?? 0)) throw new SyncError('HISTORY_LOST', 'no longer retained')
          for (; at < Number(until[partition]) && messages.length < limit; at++)
            messages.push({ place: `${partition}:${at}`, text: this.partitions[Number(partition)]![at]! })
          next[partition] = String(at)
        }
        return { messages, next }
      },
      cursor: ({ place }) => place,
      toChanges: ({ text }) => ({ type: 'upsert', key: text, record: {} }),
    }
  }
}

function contextOf({ mode = 'incremental' as Mode, startedAt = 0 } = {}): SyncContext {
  return { cycle: { id: 1, mode, startedAt, page: 1 } } as SyncContext
}

/** All pages of a cycle: what was read, and the state it leaves. */
async function cycle(
  options: OffsetsOptions<any>,
  state: OffsetsState | undefined,
  mode: Mode = 'incremental',
  startedAt = 0,
): Promise<{ keys: string[]; pages: number; state: OffsetsState }> {
  const execute = offsets(options)
  const keys: string[] = []
  for (let pages = 1, at = state; ; pages++) {
    const page = await execute(at, contextOf({ mode, startedAt }))
    keys.push(...page.changes.map(({ key }) => key!))
    at = page.nextState!
    if (!page.hasMore) return { keys, pages, state: at }
  }
}

describe('offsets', () => {
  test('R42 a cycle reads every partition from its own offset to where it ended when the cycle began, and the offsets are the state', async () => {
    const log = new ToyLog(['a', 'b', 'c'], ['d'], [])
    // More comes with every answer, as it does in a log.
    log.onRead = () => log.partitions[1]!.push(`late ${log.asked.length}`)
    const first = await cycle(log.options(), undefined)
    expect(first.keys.toSorted()).toEqual(['a', 'b', 'c', 'd'])
    expect(first.state).toEqual({ offsets: { 0: '3', 1: '1', 2: '0' }, readAt: '1970-01-01T00:00:00.000Z' })
    log.onRead = () => {}
    const second = await cycle(log.options(), first.state)
    expect(second.keys).toEqual(['late 0', 'late 1'])
    expect((await cycle(log.options(), second.state)).keys).toEqual([])
  })

  test('offsets beyond what a double holds are exact', async () => {
    const options = {
      ...new ToyLog().options(),
      bounds: async () => ({ 0: { low: '0', end: '9007199254740993' } }),
      read: async () => ({ messages: [], next: { 0: '9007199254740993' } }),
    }
    expect(
      (await cycle(options, { offsets: { 0: '9007199254740992' }, readAt: '2026-01-01T00:00:00Z' })).state.offsets,
    ).toEqual({ 0: '9007199254740993' })
  })

  test('a new partition is read from its beginning, after those whose keys may have moved into it', async () => {
    const log = new ToyLog(['a', 'b', 'c', 'd', 'e'])
    const { state } = await cycle(log.options(), undefined)
    log.partitions[0]!.push('k old', 'f', 'g')
    log.partitions.push(['k new'])
    log.low.push(0)
    log.asked.length = 0
    const { keys, state: after } = await cycle(log.options(), state)
    expect(keys).toEqual(['k old', 'f', 'g', 'k new'])
    expect(log.asked).toEqual(['0', '0', '1'])
    expect((await offsets(log.options())(state, contextOf())).left).toBe(2)
    expect(after.offsets).toEqual({ 0: '8', 1: '1' })
  })

  test('XC32 history that is lost is said: retention, a shorter log, a partition that is gone, deletions that are forgotten', async () => {
    const log = new ToyLog(['a', 'b', 'c'], ['d'])
    const { state } = await cycle(log.options(), undefined)
    const lost = (what: string, other = log, options = {}, startedAt = 0) =>
      expect(cycle({ ...other.options(), ...options }, state, 'incremental', startedAt), what).rejects.toMatchObject({
        code: 'HISTORY_LOST',
        message: expect.stringContaining(what) as string,
      })
    await lost('ends at 2', new ToyLog(['x', 'y'], ['d']))
    await lost('no longer exists', new ToyLog(['a', 'b', 'c']))
    log.partitions[0]!.push('e', 'f')
    log.low[0] = 4
    await lost('begins at 4')
    // Exactly at the offset, nothing is lost.
    log.low[0] = 3
    expect((await cycle(log.options(), state)).keys).toEqual(['e', 'f'])
    // Deletions that are forgotten are the engine's to notice, by the time of the last complete cycle.
    expect(offsets({ ...log.options(), tombstonesMs: 3_600_000 }).retentionMs).toBe(3_600_000)
    expect(offsets(log.options()).retentionMs).toBeUndefined()
  })

  test('in replace mode all that is kept is read each time; what retention takes meanwhile is passed over', async () => {
    const log = new ToyLog(['a', 'b', 'c', 'd', 'e', 'f'])
    log.low[0] = 1
    log.onRead = () => (log.low[0] = log.asked.length === 1 ? 4 : log.low[0]!)
    expect((await cycle(log.options(), undefined, 'replace')).keys).toEqual(['b', 'c', 'e', 'f'])
    for (const mode of ['replace', 'incremental'] as const)
      expect((await offsets(log.options())(undefined, contextOf({ mode }))).isLog).toBe(true)
  })

  test('in replace mode a log that was recreated meanwhile restarts the cycle', async () => {
    const log = new ToyLog(['a', 'b', 'c', 'd'])
    const execute = offsets(log.options())
    const { nextState } = await execute(undefined, contextOf({ mode: 'replace' }))
    log.partitions[0] = ['x', 'y', 'z']
    log.low[0] = 3
    await expect(execute(nextState, contextOf({ mode: 'replace' }))).rejects.toMatchObject({ code: 'CURSOR_REJECTED' })
    // Also where it has grown beyond the place since: what was lost is then not what retention took.
    const regrown = offsets({
      ...new ToyLog(['a', 'b', 'c', 'd']).options(),
      read: () => Promise.reject(new SyncError('HISTORY_LOST', 'another message')),
    })
    await expect(regrown(nextState, contextOf({ mode: 'replace' }))).rejects.toMatchObject({ code: 'CURSOR_REJECTED' })
  })

  test('marks are kept with the offsets they belong to, and handed to the next reading', async () => {
    const log = new ToyLog(['a', 'b', 'c', 'd'], ['e'])
    const handed: unknown[] = []
    const options: OffsetsOptions<any> = {
      ...log.options(),
      read: async (query, context) => {
        handed.push(query.marks)
        const answer = await log.options().read(query, context)
        // The second one is unknown.
        return {
          ...answer,
          marks: Object.fromEntries(
            Object.entries(answer.next)
              .filter(([partition]) => partition === '0')
              .map(([partition, next]) => [partition, `mark ${next}`]),
          ),
        }
      },
    }
    const { state } = await cycle(options, undefined)
    expect(handed).toEqual([undefined, { 0: 'mark 2' }, { 0: 'mark 4' }])
    expect(state.marks).toEqual({ 0: 'mark 4' })
    log.partitions[1]!.push('f')
    expect((await cycle(options, state)).state.marks).toEqual({ 0: 'mark 4' })
    expect((await cycle(log.options(), { ...state, marks: { 1: 'old' } })).state.marks).toBeUndefined()
  })

  test('the anchor is where every partition ends now', async () => {
    const log = new ToyLog(['a', 'b'], [])
    const execute = offsets(log.options())
    const anchor = (await execute.anchor(contextOf()))!
    expect(anchor.offsets).toEqual({ 0: '2', 1: '0' })
    log.partitions[1]!.push('c')
    expect((await cycle(log.options(), anchor)).keys).toEqual(['c'])
  })

  test.each([
    { offsets: { 0: '-1' }, readAt: '2026-01-01T00:00:00Z' },
    { offsets: { 0: 7 }, readAt: '2026-01-01T00:00:00Z' },
    { offsets: null, readAt: '2026-01-01T00:00:00Z' },
    { offsets: {}, readAt: 'then' },
    { offsets: {}, marks: { 0: 1 }, readAt: '2026-01-01T00:00:00Z' },
    { offsets: {}, until: { 0: 'x' }, readAt: '2026-01-01T00:00:00Z' },
  ])('a state that is not one is refused: %j', async (state) => {
    await expect(offsets(new ToyLog([]).options())(state as never, contextOf())).rejects.toMatchObject({
      code: 'CURSOR_REJECTED',
    })
  })

  test.each([
    ['backwards', { 0: '0' }],
    ['beyond the end', { 0: '9' }],
    ['a partition that was not requested', { 5: '1' }],
  ])('an answer that leads %s is refused', async (_, next) => {
    const options = { ...new ToyLog(['a', 'b', 'c']).options(), read: async () => ({ messages: [], next }) }
    await expect(cycle(options, { offsets: { 0: '1' }, readAt: '2026-01-01T00:00:00Z' })).rejects.toMatchObject({
      code: 'SOURCE_INVALID',
    })
  })
})

describe('a start', () => {
  const started = (log: ToyLog, starts: Record<string, string>) => ({ ...log.options(), start: async () => starts })

  test('partitions without a state begin at it, and not before their oldest message or after the end of the cycle', async () => {
    const log = new ToyLog(['a0', 'a1', 'a2'], ['b0', 'b1', 'b2'], ['c0'], ['d0'])
    log.low[1] = 2
    const options = started(log, { 0: '1', 1: '0', 2: '9' })
    const first = await cycle(options, undefined)
    expect(first.keys.toSorted()).toEqual(['a1', 'a2', 'b2', 'd0'])
    log.partitions[2]!.push('c1')
    expect((await cycle(options, first.state)).keys).toEqual(['c1'])
  })

  test('a partition with a state continues at its offset', async () => {
    const log = new ToyLog(['a0', 'a1', 'a2'])
    const { state } = await cycle(log.options(), undefined)
    log.partitions[0]!.push('a3')
    const options = { ...log.options(), start: () => Promise.reject(new Error('not needed')) }
    expect((await cycle(options, state)).keys).toEqual(['a3'])
  })

  test('a replace cycle begins at it every time', async () => {
    const log = new ToyLog(['a0', 'a1'])
    for (let round = 0; round < 2; round++)
      expect((await cycle(started(log, { 0: '1' }), undefined, 'replace')).keys).toEqual(['a1'])
  })
})
