import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { LinkedAbortController } from '../../src/values/linked-abort-controller.ts'

test('a linked signal follows another, can be aborted on its own, and leaves no listener behind', () => {
  const outer = new AbortController()
  const [first, second] = [new LinkedAbortController(outer.signal), new LinkedAbortController(outer.signal)]
  second.abort('enough')
  second.unlink()
  expect(getEventListeners(outer.signal, 'abort')).toHaveLength(1)
  outer.abort('over')
  expect([first.signal.reason, second.signal.reason, new LinkedAbortController(outer.signal).signal.reason]).toEqual([
    'over',
    'enough',
    'over',
  ])
  first.unlink()
  expect(new LinkedAbortController(undefined).signal.aborted).toBe(false)
})
