import { hash } from 'node:crypto'
import type { Delivery, FeedEntry } from '../contract/index.ts'
import { serializeChange } from '../feed/serialize-item.ts'
import type { ResourceTypes } from '../feed/resource-type.ts'

const BODY_BYTES_MAX = 20_000

/** A change as it is sent, ready for its first try. */
export function createDelivery(tenant: string, entry: FeedEntry, now: number, resourceTypes?: ResourceTypes): Delivery {
  const { sequence, database, key } = entry
  return { sequence, messageId: computeMessageId(tenant, entry), database, key, body: buildMessageBody(entry, resourceTypes), attempts: 0, firstAt: null, nextAt: now, dead: false, lastStatus: null, lastAnswer: null }
}

/** The same for every endpoint and every try; another once a store was set back and went on, because its times are others. */
export function computeMessageId(tenant: string, { sequence, committedAt }: Pick<FeedEntry, 'sequence' | 'committedAt'>): string {
  return `msg_${hash('sha256', JSON.stringify([tenant, committedAt, sequence]), 'base64url').slice(0, 27)}`
}

/** The item of the feed; one that is too large goes without its record, and says so. */
export function buildMessageBody(entry: FeedEntry, resourceTypes?: ResourceTypes): string {
  const full = serializeChange(entry, { resourceTypes })
  return Buffer.byteLength(full) <= BODY_BYTES_MAX ? full : `${serializeChange({ ...entry, text: null }, { resourceTypes }).slice(0, -1)},"thin":true}`
}

export interface TestMessageOptions {
  readonly now: number
  readonly nonce: string
}

/** For `webhooks test`: like a change in every way but its type. */
export function createTestMessage({ now, nonce }: TestMessageOptions): { messageId: string; body: string } {
  return {
    messageId: `msg_test_${nonce}`,
    body: JSON.stringify({ eventId: `test-${nonce}`, resourceType: 'tidemark.test', resourceId: 'test', action: 'updated', updatedAt: new Date(now).toISOString(), snapshot: { test: true } }),
  }
}
