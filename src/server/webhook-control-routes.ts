import type { Webhook, WebhookAction, WebhookAllowance, WebhookEdit } from '../contract/index.ts'
import { parseTime } from '../feed/read-feed-page.ts'
import type { EditPlan } from '../webhooks/edit-plan.ts'
import {
  ACTIONS,
  addWebhook,
  ALLOWANCES,
  toDeliveryDocument,
  editWebhook,
  findWebhook,
  pauseWebhook,
  removeWebhook,
  replayWebhook,
  resumeWebhook,
  rotateWebhook,
  testWebhook,
  toWebhookDocument,
  type WebhookActor,
} from '../webhooks/manage-webhooks.ts'
import { HttpError } from './http-error.ts'
import { pathParam, sendData, type RouteRequest, type Route } from './route.ts'
import { objectSchema, RECENT_QUERY } from './schemas.ts'

const access = { kind: 'control', scope: 'admin' } as const

const TEXT = { type: 'string' }
const TEXT_OR_NULL = { type: ['string', 'null'] }
const COUNT = { type: 'integer' }
const COUNT_OR_NULL = { type: ['integer', 'null'] }
const TEXTS_OR_NULL = { type: ['array', 'null'], items: TEXT }
const params = objectSchema({ webhook: { ...TEXT, minLength: 1, maxLength: 63, description: 'Webhook id.' } })

const WEBHOOK = {
  id: TEXT,
  url: { ...TEXT, description: 'Without its query.' },
  databases: TEXTS_OR_NULL,
  actions: TEXTS_OR_NULL,
  allow: { type: 'array', items: TEXT },
  createdAt: TEXT,
  enabled: { type: 'boolean' },
  disabled: { ...TEXT_OR_NULL, description: 'Why the webhook is disabled.' },
  state: { ...TEXT, enum: ['enabled', 'failing', 'disabled'] },
  sequence: COUNT,
  behind: COUNT,
  waiting: COUNT,
  failed: COUNT,
  failureStreak: COUNT,
  retryAt: TEXT_OR_NULL,
  succeededAt: TEXT_OR_NULL,
  failedAt: TEXT_OR_NULL,
  lastStatus: COUNT_OR_NULL,
  lastResponse: TEXT_OR_NULL,
}
const WEBHOOK_RESPONSE = objectSchema({ data: objectSchema(WEBHOOK) })
const SECRET_RESPONSE = objectSchema({
  data: objectSchema({ ...WEBHOOK, secret: { ...TEXT, description: 'Returned only once.' } }),
})
const PLAN = objectSchema({
  changes: { type: 'array', items: objectSchema({ what: TEXT, from: TEXT, to: TEXT }) },
  from: { ...COUNT, description: 'The first sequence to which the new settings apply.' },
  notes: { type: 'array', items: TEXT },
})
const DELIVERY = objectSchema({
  messageId: TEXT,
  sequence: COUNT,
  database: TEXT,
  key: TEXT,
  attempts: COUNT,
  firstAt: TEXT_OR_NULL,
  nextAt: TEXT_OR_NULL,
  failed: { type: 'boolean' },
  lastStatus: COUNT_OR_NULL,
  lastResponse: TEXT_OR_NULL,
})
const DELIVERIES = objectSchema({ data: { type: 'array', items: DELIVERY } })

/** Unknown fields are rejected: a misspelt filter would let everything through. */
function strictBody(properties: Readonly<Record<string, unknown>>, required: readonly string[] = []) {
  return { ...objectSchema(properties, required), additionalProperties: false }
}

const URL_TEXT = { ...TEXT, minLength: 1, maxLength: 2_048, description: 'A public https URL.' }
const DATABASES = {
  type: ['array', 'null'],
  items: { ...TEXT, minLength: 1, maxLength: 63 },
  minItems: 1,
  maxItems: 1_000,
}
const ONLY_ACTIONS = {
  type: ['array', 'null'],
  items: { ...TEXT, enum: ACTIONS },
  minItems: 1,
  maxItems: ACTIONS.length,
}
const ALLOW = {
  type: 'array',
  items: { ...TEXT, enum: ALLOWANCES },
  maxItems: 3,
  description: 'Exceptions to the URL checks; only for requests from this machine without a key.',
}

/** Control API of outbound webhooks; mirrors `tidemark webhooks`. */
export const webhookControlRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/api/webhooks',
    id: 'listWebhooks',
    access,
    response: objectSchema({ data: { type: 'array', items: objectSchema(WEBHOOK) } }),
    summary: 'The webhooks with their status, without secrets.',
    async handle({ caller: { store }, reply }) {
      const headSequence = await store.headSequence()
      return sendData(
        reply,
        (await store.webhooks()).map((webhook) => toWebhookDocument(webhook, headSequence)),
      )
    },
  },
  {
    method: 'POST',
    path: '/api/webhooks',
    id: 'addWebhook',
    access,
    response: SECRET_RESPONSE,
    summary:
      'Creates a webhook that sends changes to a URL, signed as defined by Standard Webhooks. The secret is returned only in this response.',
    body: strictBody(
      {
        url: URL_TEXT,
        databases: { ...DATABASES, description: 'Only changes of these databases; all if absent.' },
        actions: {
          ...ONLY_ACTIONS,
          description:
            'Only these actions; every change if absent. Events of destinations are sent only if they are named.',
        },
        allow: ALLOW,
        all: { type: 'boolean', default: false, description: 'Start with the whole log instead of new changes.' },
      },
      ['url'],
    ),
    async handle(routeRequest) {
      const {
        url,
        databases = null,
        actions = null,
        allow = [],
        all = false,
      } = routeRequest.request.body as NewWebhookBody
      checkAllow(routeRequest, allow)
      const { webhook, secret } = await addWebhook(
        routeRequest.caller.store,
        { url, databases, actions, allow, all },
        toWebhookActor(routeRequest),
      )
      return await sendWebhook(routeRequest, webhook, { secret })
    },
  },
  {
    method: 'GET',
    path: '/api/webhooks/:webhook',
    id: 'getWebhook',
    access,
    params,
    response: WEBHOOK_RESPONSE,
    summary: 'The status of one webhook.',
    handle: async (routeRequest) => sendWebhook(routeRequest, await findRequestedWebhook(routeRequest)),
  },
  {
    method: 'PATCH',
    path: '/api/webhooks/:webhook',
    id: 'editWebhook',
    access,
    params,
    response: objectSchema({ data: objectSchema({ ...WEBHOOK, plan: PLAN }) }),
    summary:
      'Updates the given settings. They apply from the webhook’s current sequence: earlier changes are not sent again.',
    body: strictBody({
      url: { ...URL_TEXT, description: 'A public https URL. Needs its own `allow`.' },
      databases: { ...DATABASES, description: 'Only changes of these databases; null for all.' },
      actions: { ...ONLY_ACTIONS, description: 'Only these actions; null for every change.' },
      allow: ALLOW,
      dryRun: { type: 'boolean', default: false, description: 'Return the plan without applying it.' },
    }),
    async handle(routeRequest) {
      const { dryRun = false, ...edit } = routeRequest.request.body as WebhookEdit & { dryRun?: boolean }
      checkAllow(routeRequest, edit.allow ?? [])
      const { webhook, plan } = await editWebhook(routeRequest.caller.store, pathParam(routeRequest, 'webhook'), edit, {
        ...toWebhookActor(routeRequest),
        isDone: !dryRun,
      })
      return await sendWebhook(routeRequest, webhook, { plan })
    },
  },
  {
    method: 'GET',
    path: '/api/webhooks/:webhook/deliveries',
    id: 'listWebhookDeliveries',
    access,
    params,
    query: RECENT_QUERY,
    response: DELIVERIES,
    summary: 'Deliveries waiting for a retry, in log order, without the records.',
    handle: (routeRequest) => sendDeliveries(routeRequest, false),
  },
  {
    method: 'GET',
    path: '/api/webhooks/:webhook/failed',
    id: 'listWebhookDead',
    access,
    params,
    query: RECENT_QUERY,
    response: DELIVERIES,
    summary: 'Failed deliveries, in log order, without the records.',
    handle: (routeRequest) => sendDeliveries(routeRequest, true),
  },
  {
    method: 'POST',
    path: '/api/webhooks/:webhook/test',
    id: 'testWebhook',
    access,
    params,
    summary: 'Sends a test message and returns the outcome.',
    response: objectSchema({
      data: objectSchema({
        messageId: TEXT,
        delivered: { type: 'boolean' },
        status: COUNT_OR_NULL,
        response: { ...TEXT_OR_NULL, description: 'Excerpt of the response, or the error.' },
      }),
    }),
    async handle(routeRequest) {
      const { messageId, kind, status, response } = await testWebhook(
        await findRequestedWebhook(routeRequest),
        routeRequest.context.send,
        routeRequest.context.ports.clock.now(),
      )
      return sendData(routeRequest.reply, { messageId, delivered: kind === 'delivered', status, response })
    },
  },
  {
    method: 'POST',
    path: '/api/webhooks/:webhook/pause',
    id: 'pauseWebhook',
    access,
    params,
    response: WEBHOOK_RESPONSE,
    summary: 'Pauses the webhook until it is resumed.',
    handle: async (routeRequest) =>
      sendWebhook(
        routeRequest,
        await pauseWebhook(routeRequest.caller.store, pathParam(routeRequest, 'webhook'), toWebhookActor(routeRequest)),
      ),
  },
  {
    method: 'POST',
    path: '/api/webhooks/:webhook/resume',
    id: 'resumeWebhook',
    access,
    params,
    response: WEBHOOK_RESPONSE,
    summary: 'Resumes a paused or disabled webhook; failed deliveries stay failed.',
    handle: async (routeRequest) =>
      sendWebhook(
        routeRequest,
        await resumeWebhook(
          routeRequest.caller.store,
          pathParam(routeRequest, 'webhook'),
          toWebhookActor(routeRequest),
        ),
      ),
  },
  {
    method: 'POST',
    path: '/api/webhooks/:webhook/replay',
    id: 'replayWebhook',
    access,
    params,
    response: WEBHOOK_RESPONSE,
    summary:
      'Enables the webhook and retries waiting and failed deliveries; with a time or `all`, sends everything from there again, with the same ids.',
    body: strictBody({
      since: { ...TEXT, maxLength: 64, description: 'RFC 3339 timestamp with a time zone, inclusive.' },
      all: { type: 'boolean', default: false, description: 'The whole log.' },
    }),
    async handle(routeRequest) {
      const { since, all } = routeRequest.request.body as { since?: string; all?: boolean }
      const { webhook } = await replayWebhook(
        routeRequest.caller.store,
        pathParam(routeRequest, 'webhook'),
        { all, since: since === undefined ? undefined : parseTime(since, 'since') },
        toWebhookActor(routeRequest),
      )
      return await sendWebhook(routeRequest, webhook)
    },
  },
  {
    method: 'POST',
    path: '/api/webhooks/:webhook/rotate',
    id: 'rotateWebhook',
    access,
    params,
    response: SECRET_RESPONSE,
    summary:
      'Creates a new secret; both secrets sign until the overlap ends. The secret is returned only in this response.',
    body: strictBody({
      overlapHours: { ...COUNT, minimum: 0, maximum: 720, default: 24, description: 'How long both secrets sign.' },
    }),
    async handle(routeRequest) {
      const { overlapHours } = routeRequest.request.body as { overlapHours: number }
      const { webhook, secret } = await rotateWebhook(
        routeRequest.caller.store,
        pathParam(routeRequest, 'webhook'),
        overlapHours * 3_600_000,
        toWebhookActor(routeRequest),
      )
      return await sendWebhook(routeRequest, webhook, { secret })
    },
  },
  {
    method: 'DELETE',
    path: '/api/webhooks/:webhook',
    id: 'removeWebhook',
    access,
    params,
    response: WEBHOOK_RESPONSE,
    summary: 'Deletes the webhook with its waiting deliveries; returns its last status.',
    handle: async (routeRequest) =>
      sendWebhook(
        routeRequest,
        await removeWebhook(
          routeRequest.caller.store,
          pathParam(routeRequest, 'webhook'),
          toWebhookActor(routeRequest),
        ),
      ),
  },
]

interface NewWebhookBody {
  readonly url: string
  readonly databases?: readonly string[] | null
  readonly actions?: readonly WebhookAction[] | null
  readonly allow?: readonly WebhookAllowance[]
  readonly all?: boolean
}

/** A key may belong to a caller who must not reach this machine's network. */
function checkAllow({ caller }: RouteRequest, allow: readonly WebhookAllowance[]): void {
  if (allow.length > 0 && caller.id !== null)
    throw new HttpError(
      'FORBIDDEN',
      '`allow` cannot be used with a key. Use `tidemark webhooks … --allow` on the machine of the store.',
    )
}

function toWebhookActor({ caller, context }: RouteRequest): WebhookActor {
  return { actor: `api:${caller.name}`, at: context.ports.clock.now(), resolve: context.resolve }
}

function findRequestedWebhook(routeRequest: RouteRequest): Promise<Webhook> {
  return findWebhook(routeRequest.caller.store, pathParam(routeRequest, 'webhook'))
}

async function sendWebhook(
  { caller, reply }: RouteRequest,
  webhook: Webhook,
  more: { secret?: string; plan?: EditPlan } = {},
): Promise<unknown> {
  return sendData(reply, { ...toWebhookDocument(webhook, await caller.store.headSequence()), ...more })
}

async function sendDeliveries(routeRequest: RouteRequest, failed: boolean): Promise<unknown> {
  const { id } = await findRequestedWebhook(routeRequest)
  return sendData(
    routeRequest.reply,
    (
      await routeRequest.caller.store.deliveries({ webhook: id, failed, limit: Number(routeRequest.query['limit']) })
    ).map(toDeliveryDocument),
  )
}
