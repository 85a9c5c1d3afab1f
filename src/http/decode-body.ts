import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import type { Readable, Transform } from 'node:stream'
import type { SyncError } from '../contract/index.ts'

/** Limits of any response, whichever source asked. A source may set lower ones; see BodyLimits. */
export interface ResponseLimits {
  /** The limit after decompression: a small response may expand into a large one. */
  readonly bodyBytesMax: number
  /** The limit before decompression. */
  readonly wireBytesMax: number
}

export interface EncodedBody {
  readonly body: Readable
  readonly headers: Headers
  /** By the rules of HTTP, regardless of the headers. */
  readonly isEmpty: boolean
}

/**
 * Decompresses the body up to the limit. Strict: a compressed body that ends early is an error. More than one encoding
 * is refused, because each layer can multiply the size.
 */
export function decodeBody(
  answer: EncodedBody,
  limits: ResponseLimits,
  refuse: (message: string) => SyncError,
  failure: (error: unknown) => unknown,
): ReadableStream<Uint8Array> | null {
  const { body, headers } = answer
  if (answer.isEmpty) {
    body.on('error', () => {}).resume()
    return null
  }
  const encodings = (headers.get('content-encoding') ?? '')
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'identity')
  if (encodings.length > 1) throw refuse(`responded with ${encodings.length} content encodings at once`)
  const unpack = encodings[0] === undefined ? null : DECODERS[encodings[0]]
  if (unpack === undefined) throw refuse('responded with an unsupported content encoding')
  const declared = Number(headers.get('content-length') ?? 0)
  if (declared > (unpack === null ? Math.min(limits.bodyBytesMax, limits.wireBytesMax) : limits.wireBytesMax))
    throw refuse(`responded with ${declared} bytes, more than allowed`)
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

/** Like pipeline(), but the reader decides whether an early end is an error. */
function pipeThroughDecoder(body: Readable, unpacker: Transform): Transform {
  body.on('error', (error) => unpacker.destroy(error))
  unpacker.on('close', () => body.destroy())
  return body.pipe(unpacker)
}

function limitBytes(
  source: Readable,
  bytesMax: number,
  refuse: (message: string) => SyncError,
  failure: (error: unknown) => unknown,
): ReadableStream<Uint8Array> {
  // Between two chunks there is no listener, and an unhandled error event would end the process.
  source.on('error', () => {})
  const pieces = (source as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]()
  let bytes = 0
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const piece = await pieces.next().catch((error: unknown) => {
          throw failure(error)
        })
        if (piece.done === true) return controller.close()
        bytes += piece.value.byteLength
        if (bytes > bytesMax) {
          source.destroy()
          throw refuse(`responded with more than ${bytesMax} bytes`)
        }
        controller.enqueue(piece.value)
      },
      cancel: () => void source.destroy(),
    },
    { highWaterMark: 0 },
  )
}
