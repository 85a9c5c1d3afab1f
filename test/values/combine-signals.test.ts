import { expect, test } from 'vitest'
import { combineSignals } from '../../src/values/combine-signals.ts'

test('a combined signal aborts with either signal', () => {
  for (const index of [0, 1] as const) {
    const controllers = [new AbortController(), new AbortController()] as const
    const combined = combineSignals(controllers[0].signal, controllers[1].signal)
    expect(combined.aborted).toBe(false)
    controllers[index].abort('enough')
    expect(combined.reason).toBe('enough')
  }
})

test('without another signal, or with the same one, no signal is created', () => {
  const { signal } = new AbortController()
  expect([null, undefined, signal].map((other) => combineSignals(signal, other) === signal)).toEqual([true, true, true])
})
