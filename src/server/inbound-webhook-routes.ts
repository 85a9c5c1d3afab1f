import type { ReceiveResult } from '../webhooks/inbound-webhooks.ts'
import { HttpError } from './http-error.ts'
import { sendJson, type RouteRequest, type Route } from './route.ts'
import { objectSchema } from './schemas.ts'

const NAME = { type: 'string', minLength: 1, maxLength: 63 }

const INBOUND_ROUTE = {
  method: 'POST', access: { kind: 'public' }, rawBytesMax: 1_048_576, response: objectSchema({ status: { type: 'string', enum: ['accepted', 'kept', 'ignored', 'duplicate'] } }), handle: receiveWebhook,
} as const

/** Endpoints for webhooks of vendors. Requests are authenticated by their signature, not by a key. */
export const inboundWebhookRoutes: readonly Route[] = [
  {
    ...INBOUND_ROUTE, path: '/webhooks/:worker/:name', id: 'receiveWebhook', params: objectSchema({ worker: NAME, name: NAME }),
    summary: 'Takes a message of a vendor, signed as its webhook demands. One that came before is a duplicate and has no effect; one that is kept to be acted on later is answered with 202.',
  },
  {
    ...INBOUND_ROUTE, path: '/webhooks/:tenant/:worker/:name', id: 'receiveWebhookOfTenant', params: objectSchema({ tenant: NAME, worker: NAME, name: NAME }),
    summary: 'The same for one of several tenants, signed with a secret that is its own.',
  },
]

async function receiveWebhook({ request, reply, params, context: hall }: RouteRequest): Promise<unknown> {
  const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]))
  const rawBody = request.body instanceof Uint8Array ? request.body : new Uint8Array()
  const reception: ReceiveResult = (await hall.inbound?.receive(params['tenant'] ?? null, params['worker']!, params['name']!, { method: request.method, path: request.url, headers, rawBody }, request.id)) ?? 'unknown'
  switch (reception) {
    case 'accepted':
    case 'kept':
    case 'ignored':
    case 'duplicate':
      return sendJson(reply.code(reception === 'kept' ? 202 : 200), JSON.stringify({ status: reception }))
    case 'unknown':
      throw new HttpError('NOT_FOUND', 'There is no such webhook.')
    case 'refused':
      throw new HttpError('UNAUTHORIZED', 'The message is not signed as it should be, or too old.')
    case 'failed':
      throw new HttpError('SERVICE_UNAVAILABLE', 'The message could not be taken at the moment. Send it again.', { headers: { 'retry-after': '30' } })
    default:
      return reception satisfies never
  }
}
