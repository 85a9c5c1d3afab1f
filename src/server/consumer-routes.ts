import type { Consumer } from '../contract/index.ts'
import { checkCursorUse, decodeCursor } from '../feed/feed-cursor.ts'
import { toIsoTime, parseTime } from '../feed/read-feed-page.ts'
import { allowsScope, databaseReadScope } from './api-key.ts'
import { computeConsumerLag } from './consumer-lag.ts'
import { HttpError } from './http-error.ts'
import { sendData, type RouteRequest, type Route } from './route.ts'
import { BODY_FIELDS, objectSchema } from './schemas.ts'

const PATH = '/agents/v1/sync-state/checkpoint'
const access = { kind: 'key' } as const
/** Per key name. */
const CONSUMERS_MAX = 100
const METADATA_MAX_BYTES = 8_192

const integrationKey = {
  type: 'string',
  minLength: 1,
  maxLength: 128,
  default: 'default',
  description: 'Name of the consumer within this key.',
}
const resourceType = {
  type: 'string',
  minLength: 1,
  maxLength: 63,
  default: 'changes',
  description: '`changes`, or the database whose list it reads.',
}
const TEXT = { type: 'string' }
const TEXT_OR_NULL = { type: ['string', 'null'] }
const CHECKPOINT = {
  integrationKey: TEXT,
  resourceType: TEXT,
  cursor: TEXT_OR_NULL,
  checkpointAt: TEXT,
  reportedAt: TEXT,
  metadata: { type: ['object', 'null'], additionalProperties: true },
}
const LAG = {
  ...CHECKPOINT,
  owner: { ...TEXT, description: 'Name of the key.' },
  behind: { type: 'integer', description: 'Log entries after its position, including other databases.' },
  lagSeconds: { type: 'integer', description: 'Age of the oldest unprocessed change; 0 if there is none.' },
  status: { ...TEXT, enum: ['healthy', 'warning', 'critical'] },
}
const QUERY = objectSchema({ integrationKey, resourceType }, [])

/** Consumers can store their position here instead of on a disk, and operators can monitor their lag. */
export const consumerRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: PATH,
    id: 'putCheckpoint',
    access,
    response: objectSchema({ data: objectSchema(CHECKPOINT) }),
    summary:
      'Stores the position of a consumer: after a cursor, before a time, or at the start. Requires the scope to read the same data. Belongs to the name of the key and survives its rotation.',
    body: {
      ...objectSchema(
        {
          integrationKey,
          resourceType,
          cursor: BODY_FIELDS.cursor,
          updatedSince: BODY_FIELDS.updatedSince,
          checkpointAt: {
            type: 'string',
            maxLength: 64,
            description: 'Time by the consumer’s clock; defaults to now.',
          },
          metadata: {
            type: ['object', 'null'],
            additionalProperties: true,
            description: `Data of the consumer, at most ${METADATA_MAX_BYTES} bytes.`,
          },
        },
        [],
      ),
      additionalProperties: false,
    },
    handle: putCheckpoint,
  },
  {
    method: 'GET',
    path: PATH,
    id: 'getCheckpoint',
    access,
    query: QUERY,
    response: objectSchema({ data: objectSchema(CHECKPOINT) }),
    summary: 'The last checkpoint of a consumer of this key.',
    async handle(routeRequest) {
      const { name, resource } = parseConsumerName(routeRequest.query)
      const found = (await routeRequest.caller.store.consumers()).find(
        (consumer) =>
          consumer.owner === routeRequest.caller.name && consumer.name === name && consumer.resource === resource,
      )
      if (found === undefined) throw checkpointNotFound()
      return sendData(routeRequest.reply, toCheckpointDocument(found))
    },
  },
  {
    method: 'DELETE',
    path: PATH,
    id: 'removeCheckpoint',
    access,
    query: QUERY,
    response: objectSchema({ data: objectSchema({ integrationKey: TEXT, resourceType: TEXT }) }),
    summary: 'Deletes the checkpoint of a consumer of this key.',
    async handle({ caller, query, reply }) {
      const name = parseConsumerName(query)
      if (!(await caller.store.removeConsumer({ owner: caller.name, ...name }))) throw checkpointNotFound()
      return sendData(reply, { integrationKey: name.name, resourceType: name.resource })
    },
  },
  {
    method: 'GET',
    path: '/agents/v1/sync-state/lag',
    id: 'listLag',
    access,
    response: objectSchema({ data: { type: 'array', items: objectSchema(LAG) } }),
    summary:
      'The lag of the consumers of this key, or of all keys with the scope `admin`. Up to 5 minutes is healthy, up to 30 minutes a warning, more is critical.',
    async handle({ caller, context, reply }) {
      const all = allowsScope(caller.scopes, 'admin')
      const consumers = (await caller.store.consumers()).filter(({ owner }) => all || owner === caller.name)
      const now = context.ports.clock.now()
      return sendData(
        reply,
        await Promise.all(
          consumers.map(async (consumer) => ({
            ...toCheckpointDocument(consumer),
            owner: consumer.owner,
            ...(await computeConsumerLag(caller.store, consumer, now)),
          })),
        ),
      )
    },
  },
]

interface CheckpointBody {
  readonly cursor?: string
  readonly updatedSince?: string
  readonly checkpointAt?: string
  readonly metadata?: Readonly<Record<string, unknown>> | null
}

async function putCheckpoint({ caller, context, request, reply }: RouteRequest): Promise<unknown> {
  const { store } = caller
  const { cursor, updatedSince, checkpointAt, metadata = null, ...given } = request.body as CheckpointBody
  const { name, resource } = parseConsumerName(given)
  const isList = resource !== 'changes'
  if (!allowsScope(caller.scopes, isList ? databaseReadScope(resource) : 'changes:read'))
    throw new HttpError('FORBIDDEN', `The key lacks the scope to read ${JSON.stringify(resource)}.`)
  if (isList && !(await store.databaseNames()).includes(resource))
    throw new HttpError('NOT_FOUND', `Database ${JSON.stringify(resource)} not found.`)
  const now = context.ports.clock.now()
  const text = metadata === null ? null : JSON.stringify(metadata)
  if (text !== null && Buffer.byteLength(text) > METADATA_MAX_BYTES)
    throw new HttpError('INVALID_REQUEST', `\`metadata\` has more than ${METADATA_MAX_BYTES} bytes.`, {
      details: { reason: 'metadata_too_large' },
    })
  const position =
    cursor === undefined
      ? null
      : await context.cursorCiphers.withCipher(store, async (cipher) => decodeCursor(cipher, cursor, now))
  if (position !== null) checkCursorUse(position, isList ? 'list' : 'changes', isList ? [resource] : undefined)
  const sequence =
    position?.sequence ?? (updatedSince === undefined ? 0 : await store.sequenceBefore(parseTime(updatedSince)))
  const consumer: Consumer = {
    owner: caller.name,
    name,
    resource,
    databases:
      position === null || (position.databases !== null && 'digest' in position.databases)
        ? isList
          ? [resource]
          : null
        : (position.databases ?? (isList ? [resource] : null)),
    sequence,
    cursor: cursor ?? null,
    checkpointAt: checkpointAt === undefined ? now : parseTime(checkpointAt, 'checkpointAt'),
    reportedAt: now,
    metadata: text,
  }
  if (!(await store.putConsumer(consumer, { ownedMax: CONSUMERS_MAX })))
    throw new HttpError('INVALID_REQUEST', `This key already has ${CONSUMERS_MAX} consumers. Delete one with DELETE.`, {
      details: { reason: 'too_many_consumers' },
    })
  return sendData(reply, toCheckpointDocument(consumer))
}

function parseConsumerName({
  integrationKey: name,
  resourceType: resource,
}: {
  readonly integrationKey?: unknown
  readonly resourceType?: unknown
}): { name: string; resource: string } {
  return { name: String(name), resource: String(resource) }
}

function checkpointNotFound(): HttpError {
  return new HttpError('NOT_FOUND', 'This consumer of the key has no checkpoint.')
}

function toCheckpointDocument({ name, resource, cursor, checkpointAt, reportedAt, metadata }: Consumer) {
  return {
    integrationKey: name,
    resourceType: resource,
    cursor,
    checkpointAt: toIsoTime(checkpointAt),
    reportedAt: toIsoTime(reportedAt),
    metadata: metadata === null ? null : (JSON.parse(metadata) as object),
  }
}
