import { randomBytes } from 'node:crypto'
import {
  SyncError,
  type ChangeAction,
  type Delivery,
  type Store,
  type Webhook,
  type WebhookAction,
  type WebhookAllowance,
  type WebhookEdit,
  type WebhookCursor,
} from '../contract/index.ts'
import { toIsoTime } from '../feed/read-feed-page.ts'
import { checkResolvedWebhookUrl } from './check-url.ts'
import { planEdit, type EditPlan } from './edit-plan.ts'
import { createTestMessage } from './message.ts'
import type { ResolveHost } from '../platform/resolve-host.ts'
import { generateSecret, rotateSecrets, parseActiveSecrets, serializeSecrets } from './secrets.ts'
import type { DeliveryOutcome, WebhookSender } from './send.ts'
import { redactUrl } from './redact-url.ts'
import { createSignatureHeaders } from './sign.ts'

/** Operations on webhooks, shared by the CLI and the HTTP API. */

export const CHANGE_ACTIONS = ['created', 'updated', 'deleted'] as const satisfies readonly ChangeAction[]
/** Sent only to webhooks that name them. */
export const EVENT_ACTIONS = [
  'destination.failing',
  'destination.recovered',
  'destination.loading',
] as const satisfies readonly WebhookAction[]
export const ACTIONS: readonly WebhookAction[] = [...CHANGE_ACTIONS, ...EVENT_ACTIONS]
export const ALLOWANCES = ['http', 'private', 'port'] as const satisfies readonly WebhookAllowance[]

export interface NewWebhook {
  readonly url: string
  readonly databases: readonly string[] | null
  readonly actions: readonly WebhookAction[] | null
  readonly allow: readonly WebhookAllowance[]
  /** Start with the whole log instead of new changes. */
  readonly all: boolean
}

/** The actor and time for the audit log, and the resolver for URL checks. */
export interface WebhookActor {
  readonly actor: string
  readonly at: number
  readonly resolve?: ResolveHost
}

/** The secret is returned only here. */
export async function addWebhook(
  store: Store,
  { url, all, ...filter }: NewWebhook,
  { actor, at, resolve }: WebhookActor,
): Promise<{ webhook: Webhook; secret: string }> {
  const { href } = await checkResolvedWebhookUrl(url, filter.allow, resolve)
  const secret = generateSecret()
  const id = `wh_${randomBytes(8).toString('hex')}`
  await store.putWebhook(
    { ...filter, id, url: href, secrets: serializeSecrets([{ secret, endsAt: null }]), createdAt: at },
    await readStartCursor(store, all ? 0 : null),
    actor,
  )
  return { webhook: await findWebhook(store, id), secret }
}

/**
 * Returns the plan; `isDone` decides whether it is applied. A new URL needs its own allowances: those of the old URL
 * do not carry over.
 */
export async function editWebhook(
  store: Store,
  id: string,
  edit: WebhookEdit,
  by: WebhookActor & { isDone: boolean },
): Promise<{ webhook: Webhook; plan: EditPlan }> {
  const before = await findWebhook(store, id)
  const { url = before.url, allow = edit.url === undefined ? before.allow : [] } = edit
  const checked = { ...edit, url: (await checkResolvedWebhookUrl(url, allow, by.resolve)).href, allow }
  const plan = planEdit(before, { ...before, ...checked }, await store.headSequence())
  if (by.isDone) await store.editWebhook(id, checked, { actor: by.actor, at: by.at })
  return { webhook: await findWebhook(store, id), plan }
}

export async function findWebhook(store: Store, id: string): Promise<Webhook> {
  const found = (await store.webhooks()).find((webhook) => webhook.id === id)
  if (found === undefined)
    throw new SyncError(
      'WEBHOOK_UNKNOWN',
      `Webhook ${JSON.stringify(id.slice(0, 80))} of tenant ${store.tenant} not found.`,
    )
  return found
}

export async function testWebhook(
  { url, allow, secrets }: Webhook,
  send: WebhookSender,
  now: number,
): Promise<DeliveryOutcome & { messageId: string }> {
  const { messageId, body } = createTestMessage({ now, nonce: randomBytes(8).toString('hex') })
  const activeSecrets = parseActiveSecrets(secrets, now).map(({ secret }) => secret)
  return {
    ...(await send({ url, allow, body, headers: createSignatureHeaders(activeSecrets, messageId, now, body) })),
    messageId,
  }
}

/** Replays from a time, from the start, or only pending and failed deliveries. */
export async function replayWebhook(
  store: Store,
  id: string,
  from: { since?: number | undefined; all?: boolean | undefined },
  by: WebhookActor,
): Promise<{ webhook: Webhook; after: number | null; revived: number }> {
  await findWebhook(store, id)
  const after = from.all === true ? 0 : from.since === undefined ? null : await store.sequenceBefore(from.since)
  const revived = await store.restartWebhook(id, {
    actor: by.actor,
    at: by.at,
    ...(after !== null && { cursor: await readStartCursor(store, after) }),
  })
  return { webhook: await findWebhook(store, id), after, revived: revived ?? 0 }
}

/** Compare-and-swap: of two concurrent rotations, the loser retries on top of the winner. */
export async function rotateWebhook(
  store: Store,
  id: string,
  overlapMs: number,
  { actor, at }: WebhookActor,
): Promise<{ webhook: Webhook; secret: string }> {
  const secret = generateSecret()
  for (;;) {
    const { secrets } = await findWebhook(store, id)
    if (await store.rotateWebhook(id, rotateSecrets(secrets, secret, at, overlapMs), { actor, at, replaces: secrets }))
      break
  }
  return { webhook: await findWebhook(store, id), secret }
}

export async function removeWebhook(store: Store, id: string, by: WebhookActor): Promise<Webhook> {
  const webhook = await findWebhook(store, id)
  await store.removeWebhook(id, { actor: by.actor, at: by.at })
  return webhook
}

/** Prefix of `disabledReason` for a webhook that was paused by an operator. */
export const PAUSED_PREFIX = 'Paused by '

export async function pauseWebhook(store: Store, id: string, { actor, at }: WebhookActor): Promise<Webhook> {
  await store.setWebhookDisabled(id, `${PAUSED_PREFIX}${actor}.`, { actor, at })
  return await findWebhook(store, id)
}

export async function resumeWebhook(store: Store, id: string, { actor, at }: WebhookActor): Promise<Webhook> {
  await store.setWebhookDisabled(id, null, { actor, at })
  return await findWebhook(store, id)
}

export type WebhookState = 'enabled' | 'failing' | 'disabled'

export function computeWebhookState({ disabledReason, failureStreak }: Webhook): WebhookState {
  return disabledReason !== null ? 'disabled' : failureStreak > 0 ? 'failing' : 'enabled'
}

/** Never includes secrets. */
export function toWebhookDocument(webhook: Webhook, headSequence: number) {
  const {
    id,
    url,
    databases,
    actions,
    allow,
    createdAt,
    sequence,
    waiting,
    failed,
    failureStreak,
    retryAt,
    succeededAt,
    failedAt,
    lastStatus,
    lastResponse,
    disabledReason,
  } = webhook
  return {
    id,
    url: redactUrl(url),
    databases,
    actions,
    allow,
    createdAt: toIsoTime(createdAt),
    enabled: disabledReason === null,
    disabled: disabledReason,
    state: computeWebhookState(webhook),
    sequence,
    behind: headSequence - sequence,
    waiting,
    failed,
    failureStreak,
    retryAt: toIso(retryAt),
    succeededAt: toIso(succeededAt),
    failedAt: toIso(failedAt),
    lastStatus,
    lastResponse,
  }
}

/** Omits the body, which is the record. */
export function toDeliveryDocument({
  sequence,
  messageId,
  database,
  key,
  attempts,
  firstAt,
  nextAt,
  failed,
  lastStatus,
  lastResponse,
}: Delivery) {
  // A delivery behind another of its key has no time of its own.
  return {
    messageId,
    sequence,
    database,
    key,
    attempts,
    firstAt: toIso(firstAt),
    nextAt: failed || nextAt > TIME_MAX ? null : toIsoTime(nextAt),
    failed,
    lastStatus,
    lastResponse,
  }
}

/** The largest value that Date accepts. */
const TIME_MAX = 8_640_000_000_000_000

function toIso(at: number | null): string | null {
  return at === null ? null : toIsoTime(at)
}

/** The current position for a sequence; null for the head of the log. */
async function readStartCursor(store: Store, sequence: number | null): Promise<WebhookCursor> {
  const page = await store.feed({ after: 0, limit: 0, scanMax: 1 })
  return { sequence: sequence ?? page.headSequence, floor: page.floor }
}
