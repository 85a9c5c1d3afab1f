import { randomBytes } from 'node:crypto'
import { SyncError, type Action, type Delivery, type Store, type Webhook, type WebhookAllowance, type WebhookEdit, type WebhookPlace } from '../contract/index.ts'
import { isoTime } from '../feed/read-page.ts'
import { checkWebhookTarget } from './check-url.ts'
import { editPlan, type EditPlan } from './edit-plan.ts'
import { probeOf } from './message.ts'
import type { Resolve } from '../platform/resolve.ts'
import { newSecret, rotated, secretsOf, secretsText } from './secrets.ts'
import type { Outcome, Send } from './send.ts'
import { shownUrl } from './shown-url.ts'
import { signatureHeaders } from './sign.ts'

/** What people do with webhooks, from the command line and over HTTP. */

export const ACTIONS = ['created', 'updated', 'deleted'] as const satisfies readonly Action[]
export const ALLOWANCES = ['http', 'private', 'port'] as const satisfies readonly WebhookAllowance[]

export interface NewWebhook {
  readonly url: string
  readonly databases: readonly string[] | null
  readonly actions: readonly Action[] | null
  readonly allow: readonly WebhookAllowance[]
  /** Begin with everything the log holds, not with what comes from now on. */
  readonly all: boolean
}

/** Who asks, when, and how the name of a URL is resolved. */
export interface WebhookActor {
  readonly actor: string
  readonly at: number
  readonly resolve?: Resolve
}

/** The secret is in no later answer. */
export async function addWebhook(store: Store, { url, all, ...filter }: NewWebhook, { actor, at, resolve }: WebhookActor): Promise<{ webhook: Webhook; secret: string }> {
  const { href } = await checkWebhookTarget(url, filter.allow, resolve)
  const secret = newSecret()
  const id = `wh_${randomBytes(8).toString('hex')}`
  await store.putWebhook({ ...filter, id, url: href, secrets: secretsText([{ secret, endsAt: null }]), createdAt: at }, await placeOf(store, all ? 0 : null), actor)
  return { webhook: await findWebhook(store, id), secret }
}

/** With its plan; `isDone` says whether it is carried out. A new URL brings its own allowances: those of the old one were given for the old one. */
export async function editWebhook(store: Store, id: string, edit: WebhookEdit, by: WebhookActor & { isDone: boolean }): Promise<{ webhook: Webhook; plan: EditPlan }> {
  const before = await findWebhook(store, id)
  const { url = before.url, allow = edit.url === undefined ? before.allow : [] } = edit
  const checked = { ...edit, url: (await checkWebhookTarget(url, allow, by.resolve)).href, allow }
  const plan = editPlan(before, { ...before, ...checked }, await store.position())
  if (by.isDone) await store.editWebhook(id, checked, { actor: by.actor, at: by.at })
  return { webhook: await findWebhook(store, id), plan }
}

export async function findWebhook(store: Store, id: string): Promise<Webhook> {
  const found = (await store.webhooks()).find((webhook) => webhook.id === id)
  if (found === undefined) throw new SyncError('WEBHOOK_UNKNOWN', `There is no webhook ${JSON.stringify(id.slice(0, 80))} for tenant ${store.tenant}.`)
  return found
}

export async function testWebhook({ url, allow, secrets }: Webhook, send: Send, now: number): Promise<Outcome & { messageId: string }> {
  const { messageId, body } = probeOf({ now, nonce: randomBytes(8).toString('hex') })
  const signing = secretsOf(secrets, now).map(({ secret }) => secret)
  return { ...(await send({ url, allow, body, headers: signatureHeaders(signing, messageId, now, body) })), messageId }
}

/** From a time on, from the start, or only what waits and was given up. */
export async function replayWebhook(store: Store, id: string, from: { since?: number | undefined; all?: boolean | undefined }, by: WebhookActor): Promise<{ webhook: Webhook; after: number | null; revived: number }> {
  await findWebhook(store, id)
  const after = from.all === true ? 0 : from.since === undefined ? null : await store.sequenceBefore(from.since)
  const revived = await store.restartWebhook(id, { actor: by.actor, at: by.at, ...(after !== null && { place: await placeOf(store, after) }) })
  return { webhook: await findWebhook(store, id), after, revived: revived ?? 0 }
}

/** Of two rotations at the same time the later one builds on the earlier: the loser of the compare-and-swap tries again. */
export async function rotateWebhook(store: Store, id: string, overlapMs: number, { actor, at }: WebhookActor): Promise<{ webhook: Webhook; secret: string }> {
  const secret = newSecret()
  for (;;) {
    const { secrets } = await findWebhook(store, id)
    if (await store.rotateWebhook(id, rotated(secrets, secret, at, overlapMs), { actor, at, replaces: secrets })) break
  }
  return { webhook: await findWebhook(store, id), secret }
}

export async function removeWebhook(store: Store, id: string, by: WebhookActor): Promise<Webhook> {
  const webhook = await findWebhook(store, id)
  await store.removeWebhook(id, { actor: by.actor, at: by.at })
  return webhook
}

/** How the reason begins when somebody wanted it so. */
export const PAUSED = 'Paused by '

export async function pauseWebhook(store: Store, id: string, { actor, at }: WebhookActor): Promise<Webhook> {
  await store.switchWebhook(id, `${PAUSED}${actor}.`, { actor, at })
  return await findWebhook(store, id)
}

export async function resumeWebhook(store: Store, id: string, { actor, at }: WebhookActor): Promise<Webhook> {
  await store.switchWebhook(id, null, { actor, at })
  return await findWebhook(store, id)
}

export type WebhookState = 'enabled' | 'failing' | 'disabled'

export function stateOf({ disabled, streak }: Webhook): WebhookState {
  return disabled !== null ? 'disabled' : streak > 0 ? 'failing' : 'enabled'
}

/** Never its secrets. */
export function webhookDocument(webhook: Webhook, newest: number) {
  const { id, url, databases, actions, allow, createdAt, position, waiting, dead, streak, retryAt, succeededAt, failedAt, lastStatus, lastAnswer, disabled } = webhook
  return {
    id, url: shownUrl(url), databases, actions, allow, createdAt: isoTime(createdAt), enabled: disabled === null, disabled, state: stateOf(webhook), position, behind: newest - position,
    waiting, dead, streak, retryAt: iso(retryAt), succeededAt: iso(succeededAt), failedAt: iso(failedAt), lastStatus, lastAnswer,
  }
}

/** Without the body: it is the record. */
export function deliveryDocument({ sequence, messageId, database, key, attempts, firstAt, nextAt, dead, lastStatus, lastAnswer }: Delivery) {
  // What waits behind another of its key is due when that one is through.
  return { messageId, sequence, database, key, attempts, firstAt: iso(firstAt), nextAt: dead || nextAt > TIME_MAX ? null : isoTime(nextAt), dead, lastStatus, lastAnswer }
}

/** The last one that a date can show. */
const TIME_MAX = 8_640_000_000_000_000

function iso(at: number | null): string | null {
  return at === null ? null : isoTime(at)
}

/** A place in the log as it is now; null for its end. */
async function placeOf(store: Store, position: number | null): Promise<WebhookPlace> {
  const page = await store.feed({ after: 0, limit: 0, scanMax: 1 })
  return { position: position ?? page.position, floor: page.floor }
}
