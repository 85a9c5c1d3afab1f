import { SyncError, type Clock } from '../contract/index.ts'

export interface BodyLimits {
  /** The size after decompression. The fetch below limits the size on the wire and idle time. */
  readonly bodyBytesMax: number
  /** Nesting of the JSON, checked while it arrives: 64 MB of opening brackets compress well and exhaust memory when parsed. */
  readonly depthMax: number
  /** For the whole body from its first byte, because one byte a second is never idle. Waiting for a pacer does not count. */
  readonly bodyDeadlineMs: number
}

export interface BodyReadInput {
  readonly response: Response
  /** Method, path and status, for error messages. */
  readonly label: string
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** Reads a body within its limits. Throws SOURCE_INVALID beyond a limit, SOURCE_TIMEOUT after the deadline, and the signal's reason. */
export async function readBody(source: BodyReadInput, limits: BodyLimits): Promise<Buffer> {
  const { response, label, clock, signal } = source
  if (response.body === null) return Buffer.alloc(0)
  const reader = response.body.getReader()
  const depth = new JsonDepthCounter()
  const pieces: Uint8Array[] = []
  const deadline = startDeadline(
    clock,
    limits.bodyDeadlineMs,
    signal,
    () => new SyncError('SOURCE_TIMEOUT', `${label} took longer than ${limits.bodyDeadlineMs} ms to arrive.`),
  )
  try {
    for (let bytes = 0; ;) {
      const piece = await Promise.race([reader.read(), deadline.promise])
      if (piece.done) return Buffer.concat(pieces)
      bytes += piece.value.byteLength
      if (bytes > limits.bodyBytesMax)
        throw new SyncError('SOURCE_INVALID', `${label} with more than ${limits.bodyBytesMax} bytes.`)
      if (depth.add(piece.value) > limits.depthMax)
        throw new SyncError('SOURCE_INVALID', `${label} with JSON nested deeper than ${limits.depthMax}.`)
      pieces.push(piece.value)
    }
  } catch (error) {
    reader.cancel(error).catch(() => {})
    throw signal.aborted ? signal.reason : error
  } finally {
    deadline.cancel()
  }
}

/** Without a reason, every response would create an exception with its stack. */
const IN_TIME = new Error('The body arrived in time.')

/** Rejects after the time, or when the signal aborts. `cancel` removes its listener, because the signal outlives many responses. */
function startDeadline(
  clock: Clock,
  ms: number,
  signal: AbortSignal,
  reason: () => Error,
): { promise: Promise<never>; cancel(): void } {
  const ended = new AbortController()
  const abort = (): void => ended.abort(signal.reason)
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  const promise = clock.sleep(ms, ended.signal).then((): never => {
    throw reason()
  })
  promise.catch(() => {})
  return {
    promise,
    cancel() {
      signal.removeEventListener('abort', abort)
      ended.abort(IN_TIME)
    },
  }
}

/** Measures the nesting depth of JSON piece by piece, without parsing it. */
export class JsonDepthCounter {
  #depth = 0
  #deepest = 0
  #inString = false
  #escaped = false

  /** Returns the maximum depth so far. */
  add(bytes: Uint8Array): number {
    let depth = this.#depth
    let deepest = this.#deepest
    let at = 0
    if (this.#inString) at = this.#skipString(bytes, 0)
    while (at < bytes.length) {
      const byte = bytes[at++]
      if (byte === QUOTE) at = this.#skipString(bytes, at)
      else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        if (++depth > deepest) deepest = depth
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth--
    }
    this.#depth = depth
    this.#deepest = deepest
    return deepest
  }

  /** Returns the index after the string, or the end of the piece. */
  #skipString(bytes: Uint8Array, from: number): number {
    let at = this.#escaped ? from + 1 : from
    this.#escaped = false
    for (; at < bytes.length; at++) {
      const byte = bytes[at]
      if (byte === BACKSLASH) at++
      else if (byte === QUOTE) {
        this.#inString = false
        return at + 1
      }
    }
    this.#inString = true
    this.#escaped = at > bytes.length
    return bytes.length
  }
}

const QUOTE = 34
const BACKSLASH = 92
const OPEN_BRACE = 123
const OPEN_BRACKET = 91
const CLOSE_BRACE = 125
const CLOSE_BRACKET = 93
