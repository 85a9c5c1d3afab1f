import { hash } from 'node:crypto'
import type { Delivery, FeedEntry } from '../contract/index.ts'
import { serializeChange } from '../feed/serialize-item.ts'
import type { ResourceTypes } from '../feed/resource-type.ts'

const BODY_BYTES_MAX = 20_000

/** A change as a delivery, ready for its first attempt. */
export function createDelivery(tenant: string, entry: FeedEntry, now: number, resourceTypes?: ResourceTypes): Delivery {
  const { sequence, database, key } = entry
  return {
    sequence,
    messageId: computeMessageId(tenant, entry),
    database,
    key,
    body: buildMessageBody(entry, resourceTypes),
    attempts: 0,
    firstAt: null,
    nextAt: now,
    failed: false,
    lastStatus: null,
    lastResponse: null,
  }
}

/**
 * The same for every endpoint and attempt. A restored store that continues gives other ids, because its commit times
 * differ.
 */
export function computeMessageId(
  tenant: string,
  { sequence, committedAt }: Pick<FeedEntry, 'sequence' | 'committedAt'>,
): string {
  return `msg_${hash('sha256', JSON.stringify([tenant, committedAt, sequence]), 'base64url').slice(0, 27)}`
}

/** The feed item. If it is too large, the record is omitted and `thin` is set. */
export function buildMessageBody(entry: FeedEntry, resourceTypes?: ResourceTypes): string {
  const full = serializeChange(entry, { resourceTypes })
  return Buffer.byteLength(full) <= BODY_BYTES_MAX
    ? full
    : `${serializeChange({ ...entry, text: null }, { resourceTypes }).slice(0, -1)},"thin":true}`
}

export interface TestMessageOptions {
  readonly now: number
  readonly nonce: string
}

/** For `webhooks test`: like a change, except for its type. */
export function createTestMessage({ now, nonce }: TestMessageOptions): { messageId: string; body: string } {
  return {
    messageId: `msg_test_${nonce}`,
    body: JSON.stringify({
      eventId: `test-${nonce}`,
      resourceType: 'tidemark.test',
      resourceId: 'test',
      action: 'updated',
      updatedAt: new Date(now).toISOString(),
      snapshot: { test: true },
    }),
  }
}
