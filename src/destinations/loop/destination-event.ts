import { ERROR_CODES, type DestinationEvent, type WebhookMessage } from '../../contract/index.ts'

/**
 * An event as a message of webhooks, in the shape of a change. Invariant 10: it has no key of a record, as logs have none.
 */
export function toWebhookMessage(event: DestinationEvent, messageId: string): WebhookMessage {
  const { kind: action, destination: key, at } = event
  return {
    messageId,
    action,
    resourceType: RESOURCE_TYPE,
    key,
    at,
    body: JSON.stringify({
      eventId: messageId,
      resourceType: RESOURCE_TYPE,
      resourceId: key,
      action,
      updatedAt: new Date(at).toISOString(),
      snapshot: toSnapshot(event),
    }),
  }
}

const RESOURCE_TYPE = 'tidemark.destination'

function toSnapshot(event: DestinationEvent): object {
  switch (event.kind) {
    case 'destination.failing': {
      const { databases, code, message, isTemporary, retryAt, destination } = event
      return {
        databases,
        code,
        message,
        advice: ERROR_CODES[code].advice.replaceAll('<name>', destination),
        temporary: isTemporary,
        retryAt: retryAt === null ? null : new Date(retryAt).toISOString(),
      }
    }
    case 'destination.loading':
      return { database: event.database, reason: event.reason }
    case 'destination.recovered':
      return {}
    default:
      return event satisfies never
  }
}
