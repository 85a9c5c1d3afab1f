import { getEventListeners } from 'node:events'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import type { Execute } from '../../src/contract/index.ts'
import { EngineFixture, planOf, upsert } from './engine-fixture.ts'

setFlagsFromString('--expose_gc')
const collectGarbage = runInNewContext('gc') as () => void

const PAGES = 40

let scene: EngineFixture
beforeEach(async () => void (scene = await EngineFixture.open()))
afterEach(() => scene.close())

/** Reads pages and hands the signal of each to the visitor. */
const sourceOf =
  (visit: (signal: AbortSignal, page: number) => void): Execute<number> =>
  (state = 0, { signal }) => {
    visit(signal, state + 1)
    return Promise.resolve({ changes: [upsert(`k${state}`)], hasMore: state + 1 < PAGES, nextState: state + 1 })
  }

test('a cycle does not keep the signals of the pages it has read', async () => {
  const signals: WeakRef<AbortSignal>[] = []
  let kept: number[] = []
  const source: Execute<number> = async (state, context) => {
    if (state === PAGES - 1) {
      await new Promise((resolve) => setImmediate(resolve))
      collectGarbage()
      kept = signals.flatMap((signal, page) => (signal.deref() === undefined ? [] : [page + 1]))
    }
    return sourceOf((signal) => void signals.push(new WeakRef(signal)))(state, context)
  }
  expect(await scene.run(planOf({ execute: source }))).toMatchObject({ error: null })
  // The last page, and one whose commit may still be under way.
  expect(kept.filter((page) => page < PAGES - 2)).toEqual([])
})

test('no signal of a cycle has a listener for each page', async () => {
  const add = vi.spyOn(EventTarget.prototype, 'addEventListener')
  onTestFinished(() => add.mockRestore())
  let most = 0
  const source = sourceOf((_signal, page) => {
    if (page < PAGES) return
    const signals = new Set(add.mock.contexts.filter((target) => target instanceof AbortSignal))
    most = Math.max(...[...signals].map((signal) => getEventListeners(signal, 'abort').length))
  })
  expect(await scene.run(planOf({ execute: source }))).toMatchObject({ error: null })
  expect(most).toBeGreaterThan(0)
  expect(most).toBeLessThan(10)
})

test('a page with a listener still receives the abort when the cycle ends', async () => {
  const aborted: number[] = []
  const source = sourceOf((signal, page) => {
    if (page === 1) signal.addEventListener('abort', () => aborted.push(page))
  })
  expect(await scene.run(planOf({ execute: source }))).toMatchObject({ error: null })
  expect(aborted).toEqual([1])
})

test.each([
  ['one request on each page that is never finished', 1],
  ['many requests at once', 20],
])('%s: Node reports no leak of listeners', async (_name, requests) => {
  const warnings: string[] = []
  const record = (warning: Error): void => void warnings.push(warning.name)
  process.on('warning', record)
  onTestFinished(() => void process.off('warning', record))
  const listeners: (() => void)[] = []
  const source = sourceOf((signal) => {
    for (let n = 0; n < requests; n++) {
      const listener = (): void => {}
      listeners.push(listener)
      signal.addEventListener('abort', listener)
    }
  })
  expect(await scene.run(planOf({ execute: source }))).toMatchObject({ error: null })
  await new Promise((resolve) => setImmediate(resolve))
  expect(listeners.length).toBe(PAGES * requests)
  expect(warnings).toEqual([])
})
