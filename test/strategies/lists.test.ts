import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SyncError, type Change, type Execute } from '../../src/contract/index.ts'
import type { CycleResult } from '../../src/engine/cycle-options.ts'
import { offset, pageNumber, token, type ListAnswer, type OffsetState } from '../../src/strategies/index.ts'
import { HOUR, EngineFixture } from '../engine/engine-fixture.ts'
import { runOn, runToEnd, setState, stateOn } from './run-strategy.ts'

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

const names = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `n${String(index).padStart(3, '0')}`)

describe('a token', () => {
  const listed = (count: number, asked: Array<string | undefined>): Execute<any> =>
    token({
      read: async ({ token: after }) => {
        asked.push(after)
        const start = after === undefined ? 0 : Number(after)
        return {
          changes: names(count)
            .slice(start, start + 2)
            .map(upsert),
          next: start + 2 < count ? String(start + 2) : undefined,
        }
      },
    })

  test('N45 N46 N47 N85 leads from page to page; the first page has none, and the page without one is the last', async () => {
    const asked: Array<string | undefined> = []
    expect(await cycle(listed(5, asked))).toMatchObject({ stopReason: 'complete', counts: { created: 5 } })
    expect(asked).toEqual([undefined, '2', '4'])
    expect((await scene.checkpoint()).committed).toBeNull()
  })

  test.each([[null], [undefined]])('N46 a missing token, as %o, is the end', async (next) => {
    expect(await cycle(token({ read: async () => ({ changes: [upsert('a')], next }) }))).toMatchObject({ pages: 1 })
  })

  test('XC15 a token that its last page used up cannot be asked again: the listing ends, also when its last page is full', async () => {
    const spent = new Set<string>()
    const iterated = token({
      read: async ({ token: after }) => {
        if (after !== undefined && spent.has(after))
          throw new SyncError('CURSOR_REJECTED', 'The iterator is no longer available.')
        const start = Number(after ?? 0)
        if (start + 2 >= 6 && after !== undefined) spent.add(after)
        return {
          changes: names(6)
            .slice(start, start + 2)
            .map(upsert),
          next: start + 2 < 6 ? String(start + 2) : null,
        }
      },
    })
    expect(await cycle(iterated)).toMatchObject({ stopReason: 'complete', counts: { created: 6 } })
  })

  test('XC15 an empty string is a token; as a control, a test for truthiness loses the rest', async () => {
    const pages = [{ changes: [upsert('a'), upsert('b')], next: '' }, { changes: [upsert('c')] }]
    const asked: unknown[] = []
    const read = async ({
      token: given,
    }: {
      token: string | undefined
    }): Promise<{ changes: Change[]; next?: string }> => pages[asked.push(given) - 1]!
    await cycle(token({ read }))
    expect(asked).toEqual([undefined, ''])
    asked.length = 0
    await cycle(
      async () => {
        const page = await read({ token: undefined })
        return { changes: page.changes, hasMore: Boolean(page.next) }
      },
      { sync: 'planted' },
    )
    expect(asked).toHaveLength(1)
  })

  test('an incremental sync starts again each cycle, not with the last token of the one before', async () => {
    const asked: Array<string | undefined> = []
    const execute = listed(3, asked)
    await cycle(execute, { mode: 'incremental' })
    await cycle(execute, { mode: 'incremental' })
    expect(asked).toEqual([undefined, '2', undefined, '2'])
  })

  test('a feed that gives a token for the next time goes on with it', async () => {
    const log = names(3)
    const execute = token({
      read: async ({ token: after }) => {
        const start = Number(after ?? 0)
        const page = log.slice(start, start + 2)
        const at = String(start + page.length)
        return start + 2 < log.length
          ? { changes: page.map(upsert), next: at }
          : { changes: page.map(upsert), resume: at }
      },
    })
    await cycle(execute, { mode: 'incremental' })
    expect(await stateOn(scene)).toEqual({ cursor: '3' })
    log.push('later')
    expect(await cycle(execute, { mode: 'incremental' })).toMatchObject({
      pages: 1,
      counts: { created: 1, unchanged: 0 },
    })
  })

  test.each([
    // After the empty answer the true one, which is full, is a first claim.
    ['full', names(4), undefined, 2],
    ['empty', names(4), 'empty', 3],
    ['short of the count', names(5), 'short', 2],
  ] as const)(
    'T7 a last page that is %s is asked for again, and its first answer sweeps nothing',
    async (_, rows, lie, times) => {
      const asked: Array<string | undefined> = []
      let isLying = false
      const execute = token({
        limit: 2,
        read: async ({ token: after }) => {
          asked.push(after)
          const start = Number(after ?? 0)
          const page = rows.slice(start, start + 2)
          const next = start + 2 < rows.length ? String(start + 2) : null
          if (!isLying || start !== 2 || asked.filter((one) => one === '2').length > 1)
            return { changes: page.map(upsert), next, ...(lie === 'short' && { total: rows.length }) }
          return {
            changes: lie === 'empty' ? [] : page.map(upsert),
            next: null,
            ...(lie === 'short' && { total: rows.length }),
          }
        },
      })
      await cycle(execute)
      asked.length = 0
      isLying = true
      expect(await cycle(execute, { allowDeletes: true })).toMatchObject({
        stopReason: 'complete',
        counts: { swept: 0 },
      })
      expect(asked.filter((one) => one === '2')).toHaveLength(times)
      expect(await scene.keys()).toEqual([...rows])
    },
  )

  test('T7 a list that stays shorter than its count sweeps nothing', async () => {
    await cycle(token({ read: async () => ({ changes: names(4).map(upsert), total: 4 }) }))
    const short = token({ read: async () => ({ changes: names(2).map(upsert), total: 4 }) })
    const result = await cycle(short, { allowDeletes: true })
    expect(result).toMatchObject({ error: { code: 'CURSOR_REJECTED' }, counts: { swept: 0 } })
  })

  test('T7 two ends of a list confirm each other after the same item', async () => {
    const rows = names(6)
    // The second page: empty, full and at its end, and only then as it is.
    const wrong = [
      { changes: [], next: null },
      { changes: rows.slice(2, 4).map(upsert), next: null },
    ]
    let isLying = false
    const execute = token({
      limit: 2,
      read: async ({ token: after }) => {
        const start = Number(after ?? 0)
        if (isLying && start === 2 && wrong.length > 0) return wrong.shift()!
        return { changes: rows.slice(start, start + 2).map(upsert), next: start + 2 < 6 ? String(start + 2) : null }
      },
    })
    await cycle(execute)
    isLying = true
    expect(await cycle(execute, { allowDeletes: true })).toMatchObject({ stopReason: 'complete', counts: { swept: 0 } })
    expect(await scene.keys()).toEqual(rows)
  })

  test('invariant 9: a list that ends after another item each time fails the cycle, and a later one goes on', async () => {
    let request = 0
    const restless = token({ confirms: true, read: async () => ({ changes: [upsert(`x${request++}`)], next: null }) })
    expect(await cycle(restless)).toMatchObject({
      stopReason: 'error',
      error: { code: 'SOURCE_UNAVAILABLE' },
      pages: 5,
    })
    const still = token({ confirms: true, read: async () => ({ changes: [upsert('a')], next: null }) })
    expect(await cycle(still, { afterMs: HOUR })).toMatchObject({ stopReason: 'complete', resumed: true })
    expect(await scene.keys()).toContain('a')
  })

  test('T7 of two empty answers the position takes the token of the first: the second may hide what came since', async () => {
    const log = names(2)
    let isHiding = false
    const execute = token({
      read: async ({ token: after }) => {
        const changes = isHiding ? [] : log.slice(Number(after ?? 0)).map(upsert)
        return { changes, resume: String(log.length) }
      },
    })
    await cycle(execute, { mode: 'incremental' })
    await cycle(execute, { mode: 'incremental' })
    log.push('later')
    isHiding = true
    await cycle(execute, { mode: 'incremental' })
    isHiding = false
    await cycle(execute, { mode: 'incremental' })
    expect(await scene.keys()).toContain('later')
  })

  test('T7 a source that forgets a listing with its last page agrees with its end by refusing that page', async () => {
    const asked: Array<string | undefined> = []
    const execute = token({
      read: async ({ token: after }) => {
        if (asked.push(after) > 2) throw new SyncError('CURSOR_REJECTED', 'The iteration is over.')
        return after === undefined
          ? { changes: names(2).map(upsert), next: '2' }
          : { changes: names(4).slice(2).map(upsert), next: null }
      },
    })
    expect(await cycle(execute)).toMatchObject({ stopReason: 'complete' })
    expect(asked).toEqual([undefined, '2', '2'])
    expect(await scene.keys()).toEqual(names(4))
  })

  test('XC20 a number for a token fails; a state that is not its own is refused and kept', async () => {
    expect(await cycle(token({ read: async () => ({ changes: [], next: 2 as never }) }))).toMatchObject({
      error: { code: 'SOURCE_INVALID' },
    })
    await setState(scene, { cursor: 2 })
    expect(await cycle(token({ read: async () => ({ changes: [] }) }), { mode: 'incremental' })).toMatchObject({
      error: { code: 'CURSOR_REJECTED' },
    })
  })
})

/** A list that others change while it is read. */
class MovingList {
  rows = names(30)
  calls = 0
  totals = false
  isHidden = false
  meanwhile: (call: number) => void = () => {}

  read(start: number, limit: number): ListAnswer {
    const changes = this.isHidden ? [] : this.rows.slice(start, start + limit).map(upsert)
    const total = this.rows.length
    this.meanwhile(++this.calls)
    return { changes, ...(this.totals && { total }) }
  }

  byOffset(limit = 10): Execute<OffsetState> {
    return offset({ read: async ({ offset: start, limit: most }) => this.read(start, most), limit })
  }

  byPage(limit = 10, firstPage = 1): Execute<any> {
    return pageNumber({ read: async ({ page }) => this.read((page - firstPage) * limit, limit), firstPage })
  }

  remove(name: string): void {
    this.rows = this.rows.filter((row) => row !== name)
  }
}

describe.each([
  ['offset', 'byOffset'],
  ['pageNumber', 'byPage'],
] as const)('%s', (name, way) => {
  let list: MovingList
  beforeEach(() => {
    list = new MovingList()
  })

  test('N74 N85 reads an unchanged list twice, and lands it once', async () => {
    expect(await cycle(list[way]())).toMatchObject({ stopReason: 'complete', counts: { created: 30, unchanged: 30 } })
    expect(list.calls).toBe(8)
    expect(await scene.feed()).toHaveLength(30)
  })

  test('reads it once when the source says how many there are, and as many were read', async () => {
    list.totals = true
    expect(await cycle(list[way]())).toMatchObject({ counts: { created: 30, unchanged: 0 } })
    expect(list.calls).toBe(3)
  })

  test('XC4 a row that is deleted before the cursor shifts another one out of the pages: it is found again, and no live row is swept', async () => {
    for (const totals of [false, true]) {
      scene = await EngineFixture.open()
      list = new MovingList()
      list.totals = totals
      await cycle(list[way]())
      list.calls = 0
      list.meanwhile = (call) => {
        if (call === 1) list.remove('n003')
      }
      expect(await cycle(list[way]())).toMatchObject({ stopReason: 'complete' })
      expect(await scene.keys()).toEqual(expect.arrayContaining(list.rows))
      await cycle(list[way]())
      expect(await scene.keys()).toEqual(list.rows)
    }
  })

  test('XC4 as a control: one pass deletes the row that moved, which lives', async () => {
    await cycle(list[way]())
    list.calls = 0
    list.meanwhile = (call) => {
      if (call === 1) list.remove('n003')
    }
    const onePass: Execute<number> = async (start = 0) => {
      const { changes } = list.read(start, 10)
      return { changes: [...changes], hasMore: changes.length > 0, nextState: start + 10 }
    }
    await cycle(onePass)
    expect(await scene.keys()).not.toContain('n010')
    expect(list.rows).toContain('n010')
  })

  test('XC4 a list that keeps changing fails after five passes, and nothing is swept', async () => {
    await cycle(list[way]())
    let fresh = 0
    list.meanwhile = (call) => {
      list.rows = call % 3 === 1 ? [`x${fresh++}`, ...list.rows.slice(0, -1)] : list.rows
    }
    const before = await scene.keys()
    const result = await cycle(list[way]())
    expect(result).toMatchObject({
      stopReason: 'error',
      error: { code: 'CURSOR_REJECTED', message: expect.stringMatching(/no two passes agree/) },
      counts: { swept: 0 },
    })
    expect(await scene.keys()).toEqual(expect.arrayContaining(before))
  })

  test('T7 passes that end too early, each after another row, do not confirm each other', async () => {
    await cycle(list[way]())
    list.calls = 0
    // Empty pages: the second one of the first pass, and the third one of the second pass.
    list.meanwhile = (call) => {
      list.isHidden = call === 1 || call === 4
    }
    expect(await cycle(list[way](), { allowDeletes: true })).toMatchObject({
      stopReason: 'complete',
      counts: { swept: 0 },
    })
    expect(await scene.keys()).toEqual(list.rows)
  })

  test('the order of rows does not matter, only which they are', async () => {
    list.meanwhile = (call) => {
      if (call % 4 === 0) list.rows.reverse()
    }
    expect(await cycle(list[way]())).toMatchObject({ stopReason: 'complete' })
    expect(list.calls).toBe(8)
  })

  test('is refused in an incremental sync, in words that say what to use', async () => {
    expect(await cycle(list[way](), { mode: 'incremental' })).toMatchObject({
      error: { code: 'SYNC_INVALID', message: expect.stringMatching(new RegExp(`${name}.*replace.*keyset`)) },
    })
    expect(list.calls).toBe(0)
  })

  test('N12 broken off after every page, it comes to the same', async () => {
    await runToEnd(scene, list[way](7), { mode: 'replace', pagesMax: 1 })
    expect(await scene.keys()).toEqual(list.rows)
  })

  test.each([[{ offset: 'x', page: 'x', pass: {} }], [{ offset: 0, page: 0 }], [{ offset: 0, page: 0, pass: null }]])(
    'a state that is not its own is refused: %o',
    async (stored) => {
      await expect(list[way]()(stored as never, { cycle: { mode: 'replace' } } as never)).rejects.toMatchObject({
        code: 'CURSOR_REJECTED',
      })
      expect(list.calls).toBe(0)
    },
  )

  test('an empty list counts as unchanged', async () => {
    list.rows = []
    expect(await cycle(list[way]())).toMatchObject({ stopReason: 'complete', pages: 2 })
  })
})

describe('the end of a list', () => {
  test('is not a short page: a source that sends fewer than asked for is read on from where it is', async () => {
    const rows = names(25)
    const asked: number[] = []
    await cycle(
      offset({
        limit: 100,
        read: async ({ offset: start }) => {
          asked.push(start)
          return { changes: rows.slice(start, start + 10).map(upsert), total: rows.length }
        },
      }),
    )
    expect(asked).toEqual([0, 10, 20])
    expect(await scene.keys()).toEqual(rows)
  })

  test("is the source's own word where it has one", async () => {
    const pages = [['a', 'b'], [], ['c']]
    await cycle(
      pageNumber({ firstPage: 0, read: async ({ page }) => ({ changes: pages[page]!.map(upsert), end: page === 2 }) }),
    )
    expect(await scene.keys()).toEqual(['a', 'b', 'c'])
  })

  test('rows that become several changes, or none, are counted as rows', async () => {
    const rows = names(6)
    const asked: number[] = []
    await cycle(
      offset({
        limit: 2,
        read: async ({ offset: start }) => {
          asked.push(start)
          const page = rows.slice(start, start + 2)
          return {
            changes: page.flatMap((row) => (row === 'n001' ? [] : [upsert(row), upsert(`${row}-more`)])),
            count: page.length,
            total: 6,
          }
        },
      }),
    )
    expect(asked).toEqual([0, 2, 4])
  })

  test.each([[{ total: -1 }], [{ total: 2.5 }], [{ count: Number.NaN }]])('%o is not a count', async (part) => {
    expect(await cycle(offset({ limit: 2, read: async () => ({ changes: [], ...part }) }))).toMatchObject({
      error: { code: 'SOURCE_INVALID' },
    })
  })
})
