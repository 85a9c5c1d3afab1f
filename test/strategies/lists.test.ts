import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Change, Execute } from '../../src/contract/index.ts'
import type { CycleResult } from '../../src/engine/cycle-options.ts'
import { offset, pageNumber, token, type ListAnswer, type OffsetState } from '../../src/strategies/index.ts'
import { Scene } from '../engine/scene.ts'
import { runOn, runToEnd, setState, stateOn } from './stage.ts'

let scene: Scene

beforeEach(async () => {
  scene = await Scene.open()
})
afterEach(() => scene.close())

const cycle = (execute: Execute<any>, choices: Parameters<typeof runOn>[2] = {}): Promise<CycleResult> => runOn(scene, execute, { mode: 'replace', ...choices })

function upsert(key: string): Change {
  return { type: 'upsert', key, record: { key } }
}

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `n${String(index).padStart(3, '0')}`)

describe('a token', () => {
  const listed = (count: number, asked: Array<string | undefined>): Execute<any> => token({
    read: async ({ token: after }) => {
      asked.push(after)
      const start = after === undefined ? 0 : Number(after)
      return { changes: names(count).slice(start, start + 2).map(upsert), next: start + 2 < count ? String(start + 2) : undefined }
    },
  })

  test('N45 N46 N47 N85 leads from page to page; the first page has none, and the page without one is the last', async () => {
    const asked: Array<string | undefined> = []
    expect(await cycle(listed(5, asked))).toMatchObject({ stopReason: 'complete', counts: { created: 5 } })
    expect(asked).toEqual([undefined, '2', '4'])
    expect((await scene.checkpoint()).committed).toBeNull()
  })

  test.each([[null], [undefined]])('N46 absence, told as %o, is the end', async (next) => {
    expect(await cycle(token({ read: async () => ({ changes: [upsert('a')], next }) }))).toMatchObject({ pages: 1 })
  })

  test('XC15 an empty string is a token; as a control, whoever asks for truth loses the rest', async () => {
    const pages = [{ changes: [upsert('a')], next: '' }, { changes: [upsert('b')] }]
    const asked: unknown[] = []
    const read = async ({ token: given }: { token: string | undefined }): Promise<{ changes: Change[]; next?: string }> => pages[asked.push(given) - 1]!
    await cycle(token({ read }))
    expect(asked).toEqual([undefined, ''])
    asked.length = 0
    await cycle(async () => {
      const page = await read({ token: undefined })
      return { changes: page.changes, hasMore: Boolean(page.next) }
    }, { sync: 'planted' })
    expect(asked).toHaveLength(1)
  })

  test('an incremental sync begins anew each cycle, not with the last token of the one before', async () => {
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
        return start + 2 < log.length ? { changes: page.map(upsert), next: at } : { changes: page.map(upsert), resume: at }
      },
    })
    await cycle(execute, { mode: 'incremental' })
    expect(await stateOn(scene)).toEqual({ cursor: '3' })
    log.push('later')
    expect(await cycle(execute, { mode: 'incremental' })).toMatchObject({ pages: 1, counts: { created: 1, unchanged: 0 } })
  })

  test('XC20 a number for a token fails; a state that is not its own is refused and kept', async () => {
    expect(await cycle(token({ read: async () => ({ changes: [], next: 2 as never }) }))).toMatchObject({ error: { code: 'SOURCE_INVALID' } })
    await setState(scene, { cursor: 2 })
    expect(await cycle(token({ read: async () => ({ changes: [] }) }), { mode: 'incremental' })).toMatchObject({ error: { code: 'CURSOR_REJECTED' } })
  })
})

/** A list that others change while it is read. */
class MovingList {
  rows = names(30)
  calls = 0
  totals = false
  meanwhile: (call: number) => void = () => {}

  read(start: number, limit: number): ListAnswer {
    const changes = this.rows.slice(start, start + limit).map(upsert)
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

describe.each([['offset', 'byOffset'], ['pageNumber', 'byPage']] as const)('%s', (name, way) => {
  let list: MovingList
  beforeEach(() => {
    list = new MovingList()
  })

  test('N74 N85 reads a list that stands still twice, and lands it once', async () => {
    expect(await cycle(list[way]())).toMatchObject({ stopReason: 'complete', counts: { created: 30, unchanged: 30 } })
    expect(list.calls).toBe(8)
    expect(await scene.feed()).toHaveLength(30)
  })

  test('reads it once when the source says how many there are, and as many were read', async () => {
    list.totals = true
    expect(await cycle(list[way]())).toMatchObject({ counts: { created: 30, unchanged: 0 } })
    expect(list.calls).toBe(3)
  })

  test('XC4 a row that goes before the position moves another out of sight: it is found again, and nobody alive is swept', async () => {
    for (const totals of [false, true]) {
      scene = await Scene.open()
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

  test('XC4 a list that never stands still is given up after five passes, and nothing is swept', async () => {
    await cycle(list[way]())
    let fresh = 0
    list.meanwhile = (call) => {
      list.rows = call % 3 === 1 ? [`x${fresh++}`, ...list.rows.slice(0, -1)] : list.rows
    }
    const before = await scene.keys()
    const result = await cycle(list[way]())
    expect(result).toMatchObject({ stopReason: 'error', error: { code: 'SOURCE_INVALID', message: expect.stringMatching(/no two readings agree/) }, counts: { swept: 0 } })
    expect(await scene.keys()).toEqual(expect.arrayContaining(before))
  })

  test('the order of rows does not matter, only which they are', async () => {
    list.meanwhile = (call) => {
      if (call % 4 === 0) list.rows.reverse()
    }
    expect(await cycle(list[way]())).toMatchObject({ stopReason: 'complete' })
    expect(list.calls).toBe(8)
  })

  test('is refused in an incremental sync, in words that say what to use', async () => {
    expect(await cycle(list[way](), { mode: 'incremental' })).toMatchObject({ error: { code: 'SYNC_INVALID', message: expect.stringMatching(new RegExp(`${name}.*replace.*keyset`)) } })
    expect(list.calls).toBe(0)
  })

  test('N12 broken off after every page, it comes to the same', async () => {
    await runToEnd(scene, list[way](7), { mode: 'replace', pagesMax: 1 })
    expect(await scene.keys()).toEqual(list.rows)
  })

  test.each([[{ offset: 'x', page: 'x', pass: {} }], [{ offset: 0, page: 0 }], [{ offset: 0, page: 0, pass: null }]])('a state that is not its own is refused: %o', async (stored) => {
    await expect(list[way]()(stored as never, { cycle: { mode: 'replace' } } as never)).rejects.toMatchObject({ code: 'CURSOR_REJECTED' })
    expect(list.calls).toBe(0)
  })

  test('an empty list is one that stands still', async () => {
    list.rows = []
    expect(await cycle(list[way]())).toMatchObject({ stopReason: 'complete', pages: 2 })
  })
})

describe('the end of a list', () => {
  test('is not a short page: a source that sends fewer than asked for is read on from where it is', async () => {
    const rows = names(25)
    const asked: number[] = []
    await cycle(offset({
      limit: 100,
      read: async ({ offset: start }) => {
        asked.push(start)
        return { changes: rows.slice(start, start + 10).map(upsert), total: rows.length }
      },
    }))
    expect(asked).toEqual([0, 10, 20])
    expect(await scene.keys()).toEqual(rows)
  })

  test('is the source\'s own word where it has one', async () => {
    const pages = [['a', 'b'], [], ['c']]
    await cycle(pageNumber({ firstPage: 0, read: async ({ page }) => ({ changes: pages[page]!.map(upsert), end: page === 2 }) }))
    expect(await scene.keys()).toEqual(['a', 'b', 'c'])
  })

  test('rows that become several changes, or none, are counted as rows', async () => {
    const rows = names(6)
    const asked: number[] = []
    await cycle(offset({
      limit: 2,
      read: async ({ offset: start }) => {
        asked.push(start)
        const page = rows.slice(start, start + 2)
        return { changes: page.flatMap((row) => (row === 'n001' ? [] : [upsert(row), upsert(`${row}-more`)])), count: page.length, total: 6 }
      },
    }))
    expect(asked).toEqual([0, 2, 4])
  })

  test.each([[{ total: -1 }], [{ total: 2.5 }], [{ count: Number.NaN }]])('%o is not a count', async (part) => {
    expect(await cycle(offset({ limit: 2, read: async () => ({ changes: [], ...part }) }))).toMatchObject({ error: { code: 'SOURCE_INVALID' } })
  })
})
