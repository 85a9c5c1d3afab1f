import type { ChangeAction, Webhook, WebhookAllowance, WebhookEdit } from '../contract/index.ts'
import { parseTime } from '../feed/read-feed-page.ts'
import type { EditPlan } from '../webhooks/edit-plan.ts'
import {
  ACTIONS, addWebhook, ALLOWANCES, toDeliveryDocument, editWebhook, findWebhook, pauseWebhook, removeWebhook, replayWebhook, resumeWebhook, rotateWebhook, testWebhook, toWebhookDocument, type WebhookActor,
} from '../webhooks/manage-webhooks.ts'
import { HttpError } from './http-error.ts'
import { sendData, type RouteRequest, type Route } from './route.ts'
import { objectSchema, RECENT_QUERY } from './schemas.ts'

const access = { kind: 'control', scope: 'admin' } as const

const TEXT = { type: 'string' }
const TEXT_OR_NULL = { type: ['string', 'null'] }
const COUNT = { type: 'integer' }
const COUNT_OR_NULL = { type: ['integer', 'null'] }
const TEXTS_OR_NULL = { type: ['array', 'null'], items: TEXT }
const params = objectSchema({ webhook: { ...TEXT, minLength: 1, maxLength: 63, description: 'The id of a webhook.' } })

const WEBHOOK = {
  id: TEXT, url: { ...TEXT, description: 'Without its query.' }, databases: TEXTS_OR_NULL, actions: TEXTS_OR_NULL, allow: { type: 'array', items: TEXT }, createdAt: TEXT,
  enabled: { type: 'boolean' }, disabled: { ...TEXT_OR_NULL, description: 'Why nothing is sent.' }, state: { ...TEXT, enum: ['enabled', 'failing', 'disabled'] },
  position: COUNT, behind: COUNT, waiting: COUNT, dead: COUNT, streak: COUNT, retryAt: TEXT_OR_NULL, succeededAt: TEXT_OR_NULL, failedAt: TEXT_OR_NULL, lastStatus: COUNT_OR_NULL, lastAnswer: TEXT_OR_NULL,
}
const WEBHOOK_RESPONSE = objectSchema({ data: objectSchema(WEBHOOK) })
const SECRET_RESPONSE = objectSchema({ data: objectSchema({ ...WEBHOOK, secret: { ...TEXT, description: 'Shown this once.' } }) })
const PLAN = objectSchema({
  changes: { type: 'array', items: objectSchema({ what: TEXT, from: TEXT, to: TEXT }) }, from: { ...COUNT, description: 'The first sequence that is judged by the new settings.' }, notes: { type: 'array', items: TEXT },
})
const DELIVERY = objectSchema({
  messageId: TEXT, sequence: COUNT, database: TEXT, key: TEXT, attempts: COUNT, firstAt: TEXT_OR_NULL, nextAt: TEXT_OR_NULL, dead: { type: 'boolean' }, lastStatus: COUNT_OR_NULL, lastAnswer: TEXT_OR_NULL,
})
const DELIVERIES = objectSchema({ data: { type: 'array', items: DELIVERY } })

/** Unknown fields are rejected: a misspelt filter would let everything through. */
function strictBody(properties: Readonly<Record<string, unknown>>, required: readonly string[] = []) {
  return { ...objectSchema(properties, required), additionalProperties: false }
}

const URL_TEXT = { ...TEXT, minLength: 1, maxLength: 2_048, description: 'A public https URL.' }
const DATABASES = { type: ['array', 'null'], items: { ...TEXT, minLength: 1, maxLength: 63 }, minItems: 1, maxItems: 1_000 }
const ONLY_ACTIONS = { type: ['array', 'null'], items: { ...TEXT, enum: ACTIONS }, minItems: 1, maxItems: 3 }
const ALLOW = { type: 'array', items: { ...TEXT, enum: ALLOWANCES }, maxItems: 3, description: 'What is otherwise refused; only for who asks from this machine without a key.' }

/** Control API of outbound webhooks; mirrors `tidemark webhooks`. */
export const webhookControlRoutes: readonly Route[] = [
  {
    method: 'GET', path: '/api/webhooks', id: 'listWebhooks', access, response: objectSchema({ data: { type: 'array', items: objectSchema(WEBHOOK) } }), summary: 'The webhooks and where they stand. Secrets are never shown.',
    async handle({ caller: { store }, reply }) {
      const newest = await store.headSequence()
      return sendData(reply, (await store.webhooks()).map((webhook) => toWebhookDocument(webhook, newest)))
    },
  },
  {
    method: 'POST', path: '/api/webhooks', id: 'addWebhook', access, response: SECRET_RESPONSE, summary: 'Sends changes to a URL, signed by Standard Webhooks. The secret is shown in this answer alone.',
    body: strictBody({
      url: URL_TEXT, databases: { ...DATABASES, description: 'Only changes of these; all when absent.' }, actions: { ...ONLY_ACTIONS, description: 'Only these; all when absent.' }, allow: ALLOW,
      all: { type: 'boolean', default: false, description: 'Begin with everything the log holds, not with what comes from now on.' },
    }, ['url']),
    async handle(ask) {
      const { url, databases = null, actions = null, allow = [], all = false } = ask.request.body as NewWebhookBody
      checkAllow(ask, allow)
      const { webhook, secret } = await addWebhook(ask.caller.store, { url, databases, actions, allow, all }, toWebhookActor(ask))
      return await sendWebhook(ask, webhook, { secret })
    },
  },
  {
    method: 'GET', path: '/api/webhooks/:webhook', id: 'getWebhook', access, params, response: WEBHOOK_RESPONSE, summary: 'Where one webhook stands.',
    handle: async (ask) => sendWebhook(ask, await findRequestedWebhook(ask)),
  },
  {
    method: 'PATCH', path: '/api/webhooks/:webhook', id: 'editWebhook', access, params, response: objectSchema({ data: objectSchema({ ...WEBHOOK, plan: PLAN }) }),
    summary: 'Changes what is given: what it is sent from its place on, or where. What was sent stays sent; what landed earlier and was not wanted then is not sent.',
    body: strictBody({
      url: { ...URL_TEXT, description: 'A public https URL. Its allowances are those given with it.' }, databases: { ...DATABASES, description: 'Only changes of these; null for all.' },
      actions: { ...ONLY_ACTIONS, description: 'Only these; null for all.' }, allow: ALLOW, dryRun: { type: 'boolean', default: false, description: 'Only tell the plan.' },
    }),
    async handle(ask) {
      const { dryRun = false, ...edit } = ask.request.body as WebhookEdit & { dryRun?: boolean }
      checkAllow(ask, edit.allow ?? [])
      const { webhook, plan } = await editWebhook(ask.caller.store, ask.params['webhook']!, edit, { ...toWebhookActor(ask), isDone: !dryRun })
      return await sendWebhook(ask, webhook, { plan })
    },
  },
  {
    method: 'GET', path: '/api/webhooks/:webhook/deliveries', id: 'listWebhookDeliveries', access, params, query: RECENT_QUERY, response: DELIVERIES, summary: 'What waits to be tried again, in the order of the log; without the records.',
    handle: (ask) => sendDeliveries(ask, false),
  },
  {
    method: 'GET', path: '/api/webhooks/:webhook/dead', id: 'listWebhookDead', access, params, query: RECENT_QUERY, response: DELIVERIES, summary: 'What was given up, in the order of the log; without the records.',
    handle: (ask) => sendDeliveries(ask, true),
  },
  {
    method: 'POST', path: '/api/webhooks/:webhook/test', id: 'testWebhook', access, params, summary: 'Sends a test message now, and tells what came of it.',
    response: objectSchema({ data: objectSchema({ messageId: TEXT, delivered: { type: 'boolean' }, status: COUNT_OR_NULL, answer: { ...TEXT_OR_NULL, description: 'A little of the answer, or why there was none.' } }) }),
    async handle(ask) {
      const { messageId, kind, status, answer } = await testWebhook(await findRequestedWebhook(ask), ask.context.send, ask.context.ports.clock.now())
      return sendData(ask.reply, { messageId, delivered: kind === 'delivered', status, answer })
    },
  },
  {
    method: 'POST', path: '/api/webhooks/:webhook/pause', id: 'pauseWebhook', access, params, response: WEBHOOK_RESPONSE, summary: 'Sends nothing until somebody resumes it.',
    handle: async (ask) => sendWebhook(ask, await pauseWebhook(ask.caller.store, ask.params['webhook']!, toWebhookActor(ask))),
  },
  {
    method: 'POST', path: '/api/webhooks/:webhook/resume', id: 'resumeWebhook', access, params, response: WEBHOOK_RESPONSE, summary: 'Goes on where it was paused or disabled; what was given up stays so.',
    handle: async (ask) => sendWebhook(ask, await resumeWebhook(ask.caller.store, ask.params['webhook']!, toWebhookActor(ask))),
  },
  {
    method: 'POST', path: '/api/webhooks/:webhook/replay', id: 'replayWebhook', access, params, response: WEBHOOK_RESPONSE, summary: 'Enables it and tries again what waits or was given up; with a time or `all`, everything from there once more, with the same ids.',
    body: strictBody({ since: { ...TEXT, maxLength: 64, description: 'RFC 3339 with a zone, inclusive.' }, all: { type: 'boolean', default: false, description: 'Everything the log holds.' } }),
    async handle(ask) {
      const { since, all } = ask.request.body as { since?: string; all?: boolean }
      const { webhook } = await replayWebhook(ask.caller.store, ask.params['webhook']!, { all, since: since === undefined ? undefined : parseTime(since, 'since') }, toWebhookActor(ask))
      return await sendWebhook(ask, webhook)
    },
  },
  {
    method: 'POST', path: '/api/webhooks/:webhook/rotate', id: 'rotateWebhook', access, params, response: SECRET_RESPONSE, summary: 'Makes the successor of its secret; both sign until the overlap is over. The secret is shown in this answer alone.',
    body: strictBody({ overlapHours: { ...COUNT, minimum: 0, maximum: 720, default: 24, description: 'How long both sign.' } }),
    async handle(ask) {
      const { overlapHours } = ask.request.body as { overlapHours: number }
      const { webhook, secret } = await rotateWebhook(ask.caller.store, ask.params['webhook']!, overlapHours * 3_600_000, toWebhookActor(ask))
      return await sendWebhook(ask, webhook, { secret })
    },
  },
  {
    method: 'DELETE', path: '/api/webhooks/:webhook', id: 'removeWebhook', access, params, response: WEBHOOK_RESPONSE, summary: 'Removes it and everything that waits for it; tells what it was.',
    handle: async (ask) => sendWebhook(ask, await removeWebhook(ask.caller.store, ask.params['webhook']!, toWebhookActor(ask))),
  },
]

interface NewWebhookBody {
  readonly url: string
  readonly databases?: readonly string[] | null
  readonly actions?: readonly ChangeAction[] | null
  readonly allow?: readonly WebhookAllowance[]
  readonly all?: boolean
}

/** A key may belong to a caller who must not reach this machine's network. */
function checkAllow({ caller }: RouteRequest, allow: readonly WebhookAllowance[]): void {
  if (allow.length > 0 && caller.id !== null) throw new HttpError('FORBIDDEN', 'With a key `allow` cannot be given. `tidemark webhooks` takes --allow, on the machine of the store.')
}

function toWebhookActor({ caller, context: hall }: RouteRequest): WebhookActor {
  return { actor: `api:${caller.name}`, at: hall.ports.clock.now(), resolve: hall.resolve }
}

function findRequestedWebhook({ caller, params: { webhook } }: RouteRequest): Promise<Webhook> {
  return findWebhook(caller.store, webhook!)
}

async function sendWebhook({ caller, reply }: RouteRequest, webhook: Webhook, more: { secret?: string; plan?: EditPlan } = {}): Promise<unknown> {
  return sendData(reply, { ...toWebhookDocument(webhook, await caller.store.headSequence()), ...more })
}

async function sendDeliveries(ask: RouteRequest, dead: boolean): Promise<unknown> {
  const { id } = await findRequestedWebhook(ask)
  return sendData(ask.reply, (await ask.caller.store.deliveries({ webhook: id, dead, limit: Number(ask.query['limit']) })).map(toDeliveryDocument))
}
