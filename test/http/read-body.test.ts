import { describe, expect, test } from 'vitest'
import { JsonDepthCounter, readBody, type BodyLimits } from '../../src/http/read-body.ts'
import { FakeClock } from '../engine/fake-clock.ts'

const LIMITS: BodyLimits = { bodyBytesMax: 1_000, depthMax: 10, bodyDeadlineMs: 5_000 }

/** A body that yields its pieces one by one, then stalls or ends. */
function bodyOf(
  pieces: Iterable<string>,
  { ends = true, everyMs = 0, clock = new FakeClock() } = {},
): { response: Response; clock: FakeClock; cancelled: () => boolean } {
  let cancelled = false
  const source = pieces[Symbol.iterator]()
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = source.next()
        if (done === true) return ends ? controller.close() : new Promise<void>(() => {})
        if (everyMs > 0) await clock.sleep(everyMs)
        controller.enqueue(new TextEncoder().encode(value))
      },
      cancel: () => void (cancelled = true),
    },
    { highWaterMark: 0 },
  )
  return { response: new Response(stream), clock, cancelled: () => cancelled }
}

async function read(
  body: ReturnType<typeof bodyOf>,
  limits: Partial<BodyLimits> = {},
  signal = new AbortController().signal,
): Promise<string> {
  const reading = readBody(
    { response: body.response, label: 'GET /x answered 200', clock: body.clock, signal },
    { ...LIMITS, ...limits },
  )
  return (await body.clock.drive(reading)).toString()
}

function* endless(piece: string): Generator<string> {
  for (;;) yield piece
}

describe('a body', () => {
  test('is read completely, however it is split', async () => {
    expect(await read(bodyOf(['{"a":', '"', 'ü"}']))).toBe('{"a":"ü"}')
    expect(await read(bodyOf([]))).toBe('')
  })

  test('Z39: is cancelled exactly at its limit', async () => {
    expect(await read(bodyOf(['x'.repeat(500), 'x'.repeat(500)]))).toHaveLength(1_000)
    const body = bodyOf(['x'.repeat(500), 'x'.repeat(501), 'never read'])
    await expect(read(body)).rejects.toMatchObject({
      code: 'SOURCE_INVALID',
      message: 'GET /x answered 200 with more than 1000 bytes.',
    })
    expect(body.cancelled()).toBe(true)
  })

  test('XD8: without end is cancelled', async () => {
    const body = bodyOf(endless(' '))
    await expect(read(body)).rejects.toMatchObject({ code: 'SOURCE_INVALID' })
    expect(body.cancelled()).toBe(true)
  })

  test('XD8: of one byte a second ends at the deadline', async () => {
    const body = bodyOf(endless(' '), { everyMs: 1_000 })
    await expect(read(body)).rejects.toMatchObject({
      code: 'SOURCE_TIMEOUT',
      message: 'GET /x answered 200 took longer than 5000 ms to arrive.',
    })
    expect(body.cancelled()).toBe(true)
  })

  test('XD8: that stalls is cancelled at the deadline', async () => {
    await expect(read(bodyOf(['half'], { ends: false }))).rejects.toMatchObject({ code: 'SOURCE_TIMEOUT' })
  })

  test('XD8: ends with the reason of the signal, before and during the read', async () => {
    for (const early of [true, false]) {
      const controller = new AbortController()
      const reason = new Error('lease lost')
      const body = bodyOf(endless(' '), { everyMs: 1_000 })
      if (early) controller.abort(reason)
      else void body.clock.sleep(2_500).then(() => controller.abort(reason))
      await expect(read(body, {}, controller.signal)).rejects.toBe(reason)
    }
  })

  test('XD8: ends with the reason of the signal, even if the body fails first with another error', async () => {
    const controller = new AbortController()
    const reason = new Error('lease lost')
    const stream = new ReadableStream<Uint8Array>({
      start: (body) => controller.signal.addEventListener('abort', () => body.error(new Error('aborted'))),
    })
    const reading = readBody(
      { response: new Response(stream), label: 'GET /x', clock: new FakeClock(), signal: controller.signal },
      LIMITS,
    )
    controller.abort(reason)
    await expect(reading).rejects.toBe(reason)
  })

  test('XD12, Z39: nested too deeply is cancelled before it is parsed', async () => {
    expect(await read(bodyOf(['['.repeat(10), ']'.repeat(10)]))).toHaveLength(20)
    const body = bodyOf(['['.repeat(6), '['.repeat(5), 'never read'])
    await expect(read(body)).rejects.toMatchObject({
      code: 'SOURCE_INVALID',
      message: 'GET /x answered 200 with JSON nested deeper than 10.',
    })
    expect(body.cancelled()).toBe(true)
  })
})

describe('the depth of JSON', () => {
  const depthOf = (text: string, size = text.length): number => {
    const bytes = new TextEncoder().encode(text)
    const gauge = new JsonDepthCounter()
    let deepest = 0
    for (let at = 0; at < bytes.length; at += size) deepest = gauge.add(bytes.subarray(at, at + size))
    return deepest
  }

  test.each([
    ['1', 0],
    ['[]', 1],
    ['{"a":[{"b":[]}]}', 4],
    ['["[[[[", "{{{"]', 1],
    [String.raw`["\"[[[", [1]]`, 2],
    [String.raw`["\\", [1]]`, 2],
    [String.raw`["\\\"[[", {}]`, 2],
    ['[[],[],[]]', 2],
  ])('XD12: of %s is %i, cut anywhere', (text, expected) => {
    for (let size = 1; size <= text.length; size++) expect(depthOf(text, size), `cut every ${size}`).toBe(expected)
  })
})
