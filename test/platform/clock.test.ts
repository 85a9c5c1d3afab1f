import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { systemClock } from '../../src/platform/clock.ts'

describe('the real clock', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  test('sleeps as long as asked, also beyond what one timer can', async () => {
    let awake = false
    const month = 31 * 24 * 3_600_000
    void systemClock.sleep(month).then(() => (awake = true))
    await vi.advanceTimersByTimeAsync(month - 1)
    expect(awake).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(awake).toBe(true)
  })

  test('wakes with the reason of the signal, and leaves no timer behind', async () => {
    const controller = new AbortController()
    const sleeping = systemClock.sleep(60_000, controller.signal)
    const reason = new Error('stop')
    controller.abort(reason)
    await expect(sleeping).rejects.toBe(reason)
    expect(vi.getTimerCount()).toBe(0)
    await expect(systemClock.sleep(60_000, controller.signal)).rejects.toBe(reason)
    await expect(systemClock.sleep(0, controller.signal)).rejects.toBe(reason)
  })

  test('leaves no listener behind after a thousand sleeps', async () => {
    const { signal } = new AbortController()
    const added = vi.spyOn(signal, 'addEventListener')
    const removed = vi.spyOn(signal, 'removeEventListener')
    for (let index = 0; index < 1_000; index++) {
      const sleeping = systemClock.sleep(10, signal)
      await vi.advanceTimersByTimeAsync(10)
      await sleeping
    }
    expect(removed).toHaveBeenCalledTimes(added.mock.calls.length)
  })

  test('does not sleep for nothing or less', async () => {
    await systemClock.sleep(0)
    await systemClock.sleep(-5)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('returns the current time', () => {
    vi.setSystemTime(1_700_000_000_000)
    expect(systemClock.now()).toBe(1_700_000_000_000)
  })
})
