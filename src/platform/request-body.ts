import { Readable } from 'node:stream'
import type { ReadableStream as NodeReadableStream } from 'node:stream/web'

export interface EncodedRequestBody {
  readonly headers: ReadonlyArray<readonly [string, string]>
  readonly body: Readable | Uint8Array | string | null
}

/** Converts any body that fetch accepts, with the content type that fetch would set. */
export function encodeRequestBody(body: RequestInit['body'] | null): EncodedRequestBody {
  if (body === null || body === undefined) return { headers: [], body: null }
  if (typeof body === 'string') return { headers: [['content-type', 'text/plain;charset=UTF-8']], body }
  if (body instanceof URLSearchParams)
    return { headers: [['content-type', 'application/x-www-form-urlencoded;charset=UTF-8']], body: body.toString() }
  if (body instanceof Uint8Array) return { headers: [], body }
  const carrier = new Response(body)
  const type = carrier.headers.get('content-type')
  return {
    headers: type === null ? [] : [['content-type', type]],
    body: carrier.body === null ? null : Readable.fromWeb(carrier.body as NodeReadableStream),
  }
}
