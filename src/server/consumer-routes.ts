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

const integrationKey = { type: 'string', minLength: 1, maxLength: 128, default: 'default', description: 'Which of the consumers of this key.' }
const resourceType = { type: 'string', minLength: 1, maxLength: 63, default: 'changes', description: '`changes`, or the database whose list it reads.' }
const TEXT = { type: 'string' }
const TEXT_OR_NULL = { type: ['string', 'null'] }
const CHECKPOINT = { integrationKey: TEXT, resourceType: TEXT, cursor: TEXT_OR_NULL, checkpointAt: TEXT, reportedAt: TEXT, metadata: { type: ['object', 'null'], additionalProperties: true } }
const LAG = {
  ...CHECKPOINT, owner: { ...TEXT, description: 'The name of the key.' }, behind: { type: 'integer', description: 'Entries of the log that it has not read; of other databases too.' },
  lagSeconds: { type: 'integer', description: 'The age of the oldest change that it has not done; 0 when there is none.' }, status: { ...TEXT, enum: ['healthy', 'warning', 'critical'] },
}
const QUERY = objectSchema({ integrationKey, resourceType }, [])

/** Consumers can store their position here instead of on a disk, and operators can monitor their lag. */
export const consumerRoutes: readonly Route[] = [
  {
    method: 'POST', path: PATH, id: 'putCheckpoint', access, response: objectSchema({ data: objectSchema(CHECKPOINT) }),
    summary: 'Keeps how far a consumer has come: after a cursor, before a time, or at the start. Needs the scope to read what it reads. Belongs to the name of the key, and survives its rotation.',
    body: {
      ...objectSchema({
        integrationKey, resourceType, cursor: BODY_FIELDS.cursor, updatedSince: BODY_FIELDS.updatedSince, checkpointAt: { type: 'string', maxLength: 64, description: 'By the consumer’s clock; now when absent.' },
        metadata: { type: ['object', 'null'], additionalProperties: true, description: `Of its own, at most ${METADATA_MAX_BYTES} bytes.` },
      }, []), additionalProperties: false,
    },
    handle: putCheckpoint,
  },
  {
    method: 'GET', path: PATH, id: 'getCheckpoint', access, query: QUERY, response: objectSchema({ data: objectSchema(CHECKPOINT) }), summary: 'What a consumer of this key told last.',
    async handle(ask) {
      const { name, resource } = parseConsumerName(ask.query)
      const found = (await ask.caller.store.consumers()).find((consumer) => consumer.owner === ask.caller.name && consumer.name === name && consumer.resource === resource)
      if (found === undefined) throw checkpointNotFound()
      return sendData(ask.reply, toCheckpointDocument(found))
    },
  },
  {
    method: 'DELETE', path: PATH, id: 'removeCheckpoint', access, query: QUERY, response: objectSchema({ data: objectSchema({ integrationKey: TEXT, resourceType: TEXT }) }), summary: 'Forgets a consumer of this key.',
    async handle({ caller, query, reply }) {
      const name = parseConsumerName(query)
      if (!(await caller.store.removeConsumer({ owner: caller.name, ...name }))) throw checkpointNotFound()
      return sendData(reply, { integrationKey: name.name, resourceType: name.resource })
    },
  },
  {
    method: 'GET', path: '/agents/v1/sync-state/lag', id: 'listLag', access, response: objectSchema({ data: { type: 'array', items: objectSchema(LAG) } }),
    summary: 'How far behind the consumers of this key are; with the scope `admin`, those of every key. Up to 5 minutes is healthy, up to 30 a warning, more is critical.',
    async handle({ caller, context: hall, reply }) {
      const all = allowsScope(caller.scopes, 'admin')
      const consumers = (await caller.store.consumers()).filter(({ owner }) => all || owner === caller.name)
      const now = hall.ports.clock.now()
      return sendData(reply, await Promise.all(consumers.map(async (consumer) => ({ ...toCheckpointDocument(consumer), owner: consumer.owner, ...(await computeConsumerLag(caller.store, consumer, now)) }))))
    },
  },
]

interface CheckpointBody {
  readonly cursor?: string
  readonly updatedSince?: string
  readonly checkpointAt?: string
  readonly metadata?: Readonly<Record<string, unknown>> | null
}

async function putCheckpoint({ caller, context: hall, request, reply }: RouteRequest): Promise<unknown> {
  const { store } = caller
  const { cursor, updatedSince, checkpointAt, metadata = null, ...given } = request.body as CheckpointBody
  const { name, resource } = parseConsumerName(given)
  const isList = resource !== 'changes'
  if (!allowsScope(caller.scopes, isList ? databaseReadScope(resource) : 'changes:read')) throw new HttpError('FORBIDDEN', `The key may not read ${JSON.stringify(resource)}, so it has no place in it.`)
  if (isList && !(await store.databaseNames()).includes(resource)) throw new HttpError('NOT_FOUND', `There is no database ${JSON.stringify(resource)}.`)
  const now = hall.ports.clock.now()
  const text = metadata === null ? null : JSON.stringify(metadata)
  if (text !== null && Buffer.byteLength(text) > METADATA_MAX_BYTES) throw new HttpError('INVALID_REQUEST', `\`metadata\` has more than ${METADATA_MAX_BYTES} bytes.`, { details: { reason: 'metadata_too_large' } })
  const place = cursor === undefined ? null : await hall.cursorCiphers.withCipher(store, async (seal) => decodeCursor(seal, cursor, now))
  if (place !== null) checkCursorUse(place, isList ? 'list' : 'changes', isList ? [resource] : undefined)
  const sequence = place?.sequence ?? (updatedSince === undefined ? 0 : await store.sequenceBefore(parseTime(updatedSince)))
  const consumer: Consumer = {
    owner: caller.name, name, resource, databases: place === null || (place.databases !== null && 'digest' in place.databases) ? (isList ? [resource] : null) : (place.databases ?? (isList ? [resource] : null)), sequence, cursor: cursor ?? null,
    checkpointAt: checkpointAt === undefined ? now : parseTime(checkpointAt, 'checkpointAt'), reportedAt: now, metadata: text,
  }
  if (!(await store.putConsumer(consumer, { ownedMax: CONSUMERS_MAX }))) throw new HttpError('INVALID_REQUEST', `This key has ${CONSUMERS_MAX} consumers already. Forget one with DELETE.`, { details: { reason: 'too_many_consumers' } })
  return sendData(reply, toCheckpointDocument(consumer))
}

function parseConsumerName({ integrationKey: name, resourceType: resource }: { readonly integrationKey?: unknown; readonly resourceType?: unknown }): { name: string; resource: string } {
  return { name: String(name), resource: String(resource) }
}

function checkpointNotFound(): HttpError {
  return new HttpError('NOT_FOUND', 'No such consumer of this key has told where it stands.')
}

function toCheckpointDocument({ name, resource, cursor, checkpointAt, reportedAt, metadata }: Consumer) {
  return { integrationKey: name, resourceType: resource, cursor, checkpointAt: toIsoTime(checkpointAt), reportedAt: toIsoTime(reportedAt), metadata: metadata === null ? null : (JSON.parse(metadata) as object) }
}
