import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import type { Readable, Transform } from 'node:stream'
import type { SyncError } from '../contract/index.ts'

export interface BodyLimits {
  /** Of one body, after decompression: a small answer may unfold into a large one. */
  readonly bodyBytesMax: number
  /** Of one body, as it comes over the wire. */
  readonly wireBytesMax: number
}

export interface EncodedBody {
  readonly body: Readable
  readonly headers: Headers
  /** By the rules of HTTP, whatever the headers say. */
  readonly isEmpty: boolean
}

/**
 * The body as it was before it was packed, breaking off at the limit. Unpacked strictly: a packed body that ends early
 * is an error, where browsers would take what there is. More than one encoding is refused before a byte is unpacked:
 * each layer may multiply the next.
 */
export function decodeBody(answer: EncodedBody, limits: BodyLimits, refuse: (message: string) => SyncError, failure: (error: unknown) => unknown): ReadableStream<Uint8Array> | null {
  const { body, headers } = answer
  if (answer.isEmpty) {
    body.on('error', () => {}).resume()
    return null
  }
  const encodings = (headers.get('content-encoding') ?? '').toLowerCase().split(',').map((name) => name.trim()).filter((name) => name !== '' && name !== 'identity')
  if (encodings.length > 1) throw refuse(`answered in ${encodings.length} encodings at once`)
  const unpack = encodings[0] === undefined ? null : DECODERS[encodings[0]]
  if (unpack === undefined) throw refuse('answered in an encoding it was not asked for')
  const declared = Number(headers.get('content-length') ?? 0)
  if (declared > (unpack === null ? Math.min(limits.bodyBytesMax, limits.wireBytesMax) : limits.wireBytesMax)) throw refuse(`answered with ${declared} bytes, more than allowed`)
  const source = unpack === null ? body : pipeThroughDecoder(body, unpack())
  return limitBytes(source, limits.bodyBytesMax, refuse, failure)
}

const DECODERS: Readonly<Record<string, (() => Transform) | undefined>> = {
  __proto__: null as never,
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

/** As pipeline() does, without its way of telling an early end from a wanted one: here the reader decides. */
function pipeThroughDecoder(body: Readable, unpacker: Transform): Transform {
  body.on('error', (error) => unpacker.destroy(error))
  unpacker.on('close', () => body.destroy())
  return body.pipe(unpacker)
}

function limitBytes(source: Readable, bytesMax: number, refuse: (message: string) => SyncError, failure: (error: unknown) => unknown): ReadableStream<Uint8Array> {
  // Between two pieces nobody listens, and an error without a listener ends the process.
  source.on('error', () => {})
  const pieces = (source as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]()
  let bytes = 0
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const piece = await pieces.next().catch((error: unknown) => {
        throw failure(error)
      })
      if (piece.done === true) return controller.close()
      bytes += piece.value.byteLength
      if (bytes > bytesMax) {
        source.destroy()
        throw refuse(`answered with more than ${bytesMax} bytes`)
      }
      controller.enqueue(piece.value)
    },
    cancel: () => void source.destroy(),
  }, { highWaterMark: 0 })
}
