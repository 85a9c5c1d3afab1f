import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { Following } from '../../src/values/following.ts'

test('a signal that follows another hears of it, has a word of its own, and leaves nothing behind', () => {
  const outer = new AbortController()
  const [first, second] = [new Following(outer.signal), new Following(outer.signal)]
  second.abort('enough')
  second.letGo()
  expect(getEventListeners(outer.signal, 'abort')).toHaveLength(1)
  outer.abort('over')
  expect([first.signal.reason, second.signal.reason, new Following(outer.signal).signal.reason]).toEqual(['over', 'enough', 'over'])
  first.letGo()
  expect(new Following(undefined).signal.aborted).toBe(false)
})
