import { SyncError, type Clock } from '../../contract/index.ts'

export interface BodyLimits {
  /** Unpacked. What came over the wire, and pauses within, are bounded by the fetch beneath. */
  readonly bodyBytesMax: number
  /** Of the JSON in it, while it arrives: 64 MB of opening brackets are small on the wire and fill the memory when parsed. */
  readonly depthMax: number
  /** For the whole body, counted from its first byte: a byte a second is never idle. Waiting for a pacer does not count. */
  readonly bodyDeadlineMs: number
}

export interface BodyReadInput {
  readonly response: Response
  /** As an error may say it: method, path and status. */
  readonly label: string
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** The one reader of bodies. Throws SOURCE_INVALID beyond a bound, SOURCE_TIMEOUT beyond the deadline, and the signal's reason. */
export async function readBody(source: BodyReadInput, limits: BodyLimits): Promise<Buffer> {
  const { response, label: place, clock, signal } = source
  if (response.body === null) return Buffer.alloc(0)
  const reader = response.body.getReader()
  const depth = new JsonDepthCounter()
  const pieces: Uint8Array[] = []
  const late = startDeadline(clock, limits.bodyDeadlineMs, signal, () => new SyncError('SOURCE_TIMEOUT', `${place} took longer than ${limits.bodyDeadlineMs} ms to arrive.`))
  try {
    for (let bytes = 0; ; ) {
      const piece = await Promise.race([reader.read(), late.promise])
      if (piece.done) return Buffer.concat(pieces)
      bytes += piece.value.byteLength
      if (bytes > limits.bodyBytesMax) throw new SyncError('SOURCE_INVALID', `${place} with more than ${limits.bodyBytesMax} bytes.`)
      if (depth.add(piece.value) > limits.depthMax) throw new SyncError('SOURCE_INVALID', `${place} with JSON nested deeper than ${limits.depthMax}.`)
      pieces.push(piece.value)
    }
  } catch (error) {
    reader.cancel(error).catch(() => {})
    throw signal.aborted ? signal.reason : error
  } finally {
    late.cancel()
  }
}

/** Rejects when the time is over or the signal is aborted, unless cancelled. Leaves nothing behind at a signal that outlives many answers. */
function startDeadline(clock: Clock, ms: number, signal: AbortSignal, reason: () => Error): { promise: Promise<never>; cancel(): void } {
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
      ended.abort()
    },
  }
}

/** Counts how deep JSON is nested, piece by piece, without parsing it. */
export class JsonDepthCounter {
  #depth = 0
  #deepest = 0
  #inString = false
  #escaped = false

  /** The deepest so far. */
  add(bytes: Uint8Array): number {
    let depth = this.#depth
    let deepest = this.#deepest
    let at = 0
    if (this.#inString) at = this.#skipString(bytes, 0)
    while (at < bytes.length) {
      const byte = bytes[at++]!
      if (byte === QUOTE) at = this.#skipString(bytes, at)
      else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        if (++depth > deepest) deepest = depth
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth--
    }
    this.#depth = depth
    this.#deepest = deepest
    return deepest
  }

  /** Where the string ends, or the piece does. */
  #skipString(bytes: Uint8Array, from: number): number {
    let at = this.#escaped ? from + 1 : from
    this.#escaped = false
    for (; at < bytes.length; at++) {
      const byte = bytes[at]!
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
