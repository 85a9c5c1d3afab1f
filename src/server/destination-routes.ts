import type { DestinationSignal } from '../contract/index.ts'
import { toDestinationDocument, type DestinationDocument } from '../destinations/loop/destination-document.ts'
import { readDestinationOverviews } from '../destinations/loop/destination-overview.ts'
import { allowsScope, databaseReadScope } from './api-key.ts'
import type { Caller } from './authenticator.ts'
import { HttpError } from './http-error.ts'
import { pathParam, sendData, type Route, type RouteRequest } from './route.ts'
import { objectSchema } from './schemas.ts'

const readAccess = { kind: 'control', scope: 'sync:read' } as const
const writeAccess = { kind: 'control', scope: 'sync:write' } as const

const TEXT = { type: 'string' }
const TEXT_OR_NULL = { type: ['string', 'null'] }
const COUNT = { type: 'integer' }
const COUNT_OR_NULL = { type: ['integer', 'null'] }
const ERROR = { code: TEXT, message: TEXT }
const orNull = (schema: Readonly<Record<string, unknown>>) => ({ ...schema, type: ['object', 'null'] })

const PROGRESS = objectSchema({
  database: TEXT,
  state: { ...TEXT, enum: ['new', 'loading', 'following', 'waiting', 'failed'] },
  sequence: { ...COUNT, description: 'Every change up to it is applied.' },
  readSequence: { ...COUNT, description: 'The log was read up to it.' },
  committedAt: TEXT_OR_NULL,
  changes: { ...COUNT, description: 'Changes applied since the destination was added.' },
  loadReason: TEXT_OR_NULL,
  failure: orNull(
    objectSchema({
      ...ERROR,
      at: TEXT_OR_NULL,
      firstSequence: { ...COUNT_OR_NULL, description: 'The batch that was not applied begins here.' },
      lastSequence: COUNT_OR_NULL,
      key: { ...TEXT_OR_NULL, description: 'The key of the record that the destination rejects.' },
    }),
  ),
})

/** The schema of a destination document. */
export const DESTINATION = objectSchema({
  destination: TEXT,
  declared: { type: 'boolean' },
  kind: TEXT_OR_NULL,
  location: TEXT_OR_NULL,
  mode: TEXT_OR_NULL,
  schedule: { type: ['object', 'null'], additionalProperties: true },
  health: { ...TEXT, enum: ['HEALTHY', 'INITIALIZING', 'WARNING', 'ERROR', 'PAUSED'] },
  lagMs: {
    ...COUNT_OR_NULL,
    description: 'The age of the oldest change that is not applied; null until every database is loaded.',
  },
  behind: { ...COUNT_OR_NULL, description: 'Entries of the log that the slowest database has not read.' },
  paused: { type: 'boolean' },
  heldBy: TEXT_OR_NULL,
  next: orNull(objectSchema({ at: TEXT_OR_NULL, why: TEXT })),
  triggeredAt: TEXT_OR_NULL,
  resync: { type: 'array', items: TEXT, description: 'Databases that will be loaded again.' },
  startedAt: TEXT_OR_NULL,
  endedAt: TEXT_OR_NULL,
  failures: COUNT,
  retryAt: TEXT_OR_NULL,
  error: orNull(objectSchema({ ...ERROR, advice: TEXT })),
  databases: { type: 'array', items: PROGRESS },
})

const PARAMS = objectSchema({ destination: { ...TEXT, minLength: 1, maxLength: 63, description: 'Destination name.' } })
const RESPONSE = objectSchema({ data: DESTINATION })
const SUMMARIES = {
  run: 'Runs the destination now.',
  pause: 'Pauses the destination after the current batch until it is resumed.',
  resume: 'Resumes the destination and clears the wait after failed runs.',
}

/** Control of destinations; mirrors `tidemark destinations`. */
export const destinationRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/api/destinations',
    id: 'listDestinations',
    access: readAccess,
    response: objectSchema({ data: { type: 'array', items: DESTINATION } }),
    summary:
      'The status of every destination. Messages and keys of failures are shown only for databases that the key may read.',
    handle: async (routeRequest) => sendData(routeRequest.reply, await listDocuments(routeRequest)),
  },
  ...(['run', 'pause', 'resume'] as const).map((kind): Route => ({
    method: 'POST',
    path: `/api/destinations/:destination/${kind}`,
    id: `${kind}Destination`,
    access: writeAccess,
    params: PARAMS,
    response: RESPONSE,
    summary: SUMMARIES[kind],
    handle: (routeRequest) => sendSignal(routeRequest, () => ({ kind })),
  })),
  {
    method: 'POST',
    path: '/api/destinations/:destination/resync',
    id: 'resyncDestination',
    access: writeAccess,
    params: PARAMS,
    body: {
      ...objectSchema({ databases: { type: 'array', items: TEXT, minItems: 1, description: 'Default: all.' } }, []),
      additionalProperties: false,
    },
    response: RESPONSE,
    summary: 'Loads databases again from the store, beside the old rows, and replaces them when it is complete.',
    handle: (routeRequest) =>
      sendSignal(routeRequest, ({ databases }) => {
        const known = databases.map(({ database }) => database)
        const { databases: chosen = known } = (routeRequest.request.body ?? {}) as { databases?: string[] }
        const unknown = chosen.find((database) => !known.includes(database))
        if (unknown !== undefined)
          throw new HttpError('NOT_FOUND', `The destination has no database ${JSON.stringify(unknown)}.`)
        return { kind: 'resync', databases: chosen }
      }),
  },
]

async function listDocuments({ context, caller }: RouteRequest): Promise<DestinationDocument[]> {
  // The worker, and so its destinations, runs only for the tenants of this process.
  const declared = context.isServedTenant(caller.store.tenant) ? context.destinations : []
  const overviews = await readDestinationOverviews(caller.store, declared, context.ports.clock.now())
  return overviews.map((overview) => withhold(toDestinationDocument(overview), caller))
}

async function sendSignal(
  routeRequest: RouteRequest,
  signalFor: (document: DestinationDocument) => DestinationSignal,
): Promise<unknown> {
  const { caller, context, reply } = routeRequest
  const name = pathParam(routeRequest, 'destination')
  const find = async (): Promise<DestinationDocument | undefined> =>
    (await listDocuments(routeRequest)).find(({ destination }) => destination === name)
  const found = await find()
  if (found === undefined) throw new HttpError('NOT_FOUND', 'Destination not found. GET /api/destinations lists them.')
  await caller.store.signalDestination(name, signalFor(found), {
    actor: `api:${caller.name}`,
    at: context.ports.clock.now(),
  })
  return sendData(reply, await find())
}

/** A rejected record is content: its key and the message about it require the scope to read its database. */
function withhold(document: DestinationDocument, { scopes }: Caller): DestinationDocument {
  const missing = document.databases
    .map(({ database }) => databaseReadScope(database))
    .find((scope) => !allowsScope(scopes, scope))
  if (missing === undefined) return document
  const message = `Withheld: the key lacks the scope \`${missing}\`.`
  return {
    ...document,
    error: document.error === null ? null : { ...document.error, message },
    databases: document.databases.map((one) =>
      one.failure === null || allowsScope(scopes, databaseReadScope(one.database))
        ? one
        : { ...one, failure: { ...one.failure, message, key: null } },
    ),
  }
}
