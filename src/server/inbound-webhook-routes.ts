import type { ReceiveResult } from '../webhooks/inbound-webhooks.ts'
import { HttpError } from './http-error.ts'
import { pathParam, sendJson, type RouteRequest, type Route } from './route.ts'
import { objectSchema } from './schemas.ts'

const NAME = { type: 'string', minLength: 1, maxLength: 63 }

const INBOUND_ROUTE = {
  method: 'POST',
  access: { kind: 'public' },
  rawBytesMax: 1_048_576,
  response: objectSchema({ status: { type: 'string', enum: ['accepted', 'kept', 'ignored', 'duplicate'] } }),
  handle: receiveWebhook,
} as const

/** Endpoints for webhooks of vendors. Requests are authenticated by their signature, not by a key. */
export const inboundWebhookRoutes: readonly Route[] = [
  {
    ...INBOUND_ROUTE,
    path: '/webhooks/:worker/:name',
    id: 'receiveWebhook',
    params: objectSchema({ worker: NAME, name: NAME }),
    summary:
      'Receives a signed webhook message of a vendor. A duplicate has no effect; a message that is stored and processed later is answered with 202.',
  },
  {
    ...INBOUND_ROUTE,
    path: '/webhooks/:tenant/:worker/:name',
    id: 'receiveWebhookOfTenant',
    params: objectSchema({ tenant: NAME, worker: NAME, name: NAME }),
    summary: 'The same for one of several tenants, signed with the secret of that tenant.',
  },
]

async function receiveWebhook({ request, reply, params, context }: RouteRequest): Promise<unknown> {
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]),
  )
  const rawBody = request.body instanceof Uint8Array ? request.body : new Uint8Array()
  const result: ReceiveResult =
    (await context.inbound?.receive(
      params['tenant'] ?? null,
      pathParam({ params }, 'worker'),
      pathParam({ params }, 'name'),
      { method: request.method, path: request.url, headers, rawBody },
      request.id,
    )) ?? 'unknown'
  switch (result) {
    case 'accepted':
    case 'kept':
    case 'ignored':
    case 'duplicate':
      return sendJson(reply.code(result === 'kept' ? 202 : 200), JSON.stringify({ status: result }))
    case 'unknown':
      throw new HttpError('NOT_FOUND', 'Webhook not found.')
    case 'refused':
      throw new HttpError('UNAUTHORIZED', 'The signature is invalid, or the message is too old.')
    case 'failed':
      throw new HttpError('SERVICE_UNAVAILABLE', 'The message could not be processed. Send it again.', {
        headers: { 'retry-after': '30' },
      })
    default:
      return result satisfies never
  }
}
