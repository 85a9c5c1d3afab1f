import { isSyncError, type JsonObject } from '../contract/index.ts'
import { buildCredentials, CREDENTIAL_FIELDS, type CredentialKind } from '../connections/build-credentials.ts'
import { toConnectionDocument } from '../connections/connection-document.ts'
import {
  addConnection,
  createConnectionRuntime,
  disableConnection,
  editConnection,
  enableConnection,
  getConnection,
  removeConnection,
  revokeConnection,
  testConnection,
  type ConnectionActor,
} from '../connections/manage-connections.ts'
import { HttpError } from './http-error.ts'
import { pathParam, sendData, type Route, type RouteRequest } from './route.ts'
import { objectSchema } from './schemas.ts'

const READ = { kind: 'control', scope: 'connections:read' } as const
const WRITE = { kind: 'control', scope: 'connections:write' } as const

const TEXT = { type: 'string' }
const NAME = { ...TEXT, minLength: 1, maxLength: 63 }
const params = objectSchema({ connection: { ...NAME, description: 'Name of the connection.' } })

const CONNECTION = objectSchema({
  name: TEXT,
  provider: TEXT,
  status: { ...TEXT, enum: ['active', 'needs_reauthorization', 'revoked', 'disabled'] },
  statusReason: { type: ['string', 'null'], description: 'Why it is not active.' },
  settings: { type: 'object', additionalProperties: true },
  scopes: { type: 'array', items: TEXT },
  account: {
    anyOf: [objectSchema({ id: TEXT, label: TEXT }), { type: 'null' }],
    description: 'The account as the vendor states it.',
  },
  createdAt: TEXT,
  updatedAt: TEXT,
  version: { type: 'integer' },
})
const ONE = objectSchema({ data: CONNECTION })
const SECRETS = {
  type: 'object',
  additionalProperties: { ...TEXT, maxLength: 65_536 },
  maxProperties: 50,
  description: 'Values by name: key; user and password; or access_token and refresh_token. They are never returned.',
}
const KIND = { ...TEXT, enum: Object.keys(CREDENTIAL_FIELDS), description: 'The kind of the secrets.' }
const SETTINGS = { type: 'object', additionalProperties: { ...TEXT, maxLength: 4_096 }, maxProperties: 50 }
const SCOPES = { type: 'array', items: { ...TEXT, maxLength: 200 }, maxItems: 200 }
const REASON = { ...TEXT, maxLength: 1_000, description: 'For the audit log.' }

const ACTS = { disable: disableConnection, enable: enableConnection, revoke: revokeConnection }
const SUMMARIES = {
  disable: 'Stops the syncs of a connection in every process.',
  enable: 'Starts the syncs of a disabled connection.',
  revoke: 'Deletes the stored credentials; the connection and its rows stay.',
}

interface ConnectionBody {
  readonly provider: string
  readonly name?: string
  readonly kind: CredentialKind
  readonly secrets: Record<string, string>
  readonly settings?: JsonObject
  readonly scopes?: string[]
  readonly allowAccountChange?: boolean
  readonly reason?: string
}

/** Control API of connections; mirrors `tidemark connections`. */
export const connectionRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/api/connections',
    id: 'listConnections',
    access: READ,
    response: objectSchema({ data: { type: 'array', items: CONNECTION } }),
    summary: 'The connections of the tenant, without credentials.',
    handle: async ({ caller: { store }, reply }) =>
      sendData(reply, (await store.connections()).map(toConnectionDocument)),
  },
  {
    method: 'POST',
    path: '/api/connections',
    id: 'createConnection',
    access: WRITE,
    body: {
      ...objectSchema(
        {
          provider: NAME,
          name: NAME,
          kind: KIND,
          secrets: SECRETS,
          settings: SETTINGS,
          scopes: SCOPES,
          reason: REASON,
        },
        ['provider', 'kind', 'secrets'],
      ),
      additionalProperties: false,
    },
    response: ONE,
    summary: 'Stores the credentials of an account, sealed. The syncs that name the connection start.',
    handle: (request) =>
      answer(async () => {
        const { provider, name = provider, kind, secrets, settings = {}, scopes = [] } = bodyOf(request)
        const credentials = buildCredentials(provider, kind, secrets)
        const { store } = request.caller
        const added = await addConnection(store, { name, provider, credentials, settings, scopes }, toActor(request))
        return sendData(request.reply, toConnectionDocument(added))
      }),
  },
  {
    method: 'GET',
    path: '/api/connections/:connection',
    id: 'getConnection',
    access: READ,
    params,
    response: ONE,
    summary: 'One connection, without credentials.',
    handle: (request) =>
      answer(async () =>
        sendData(request.reply, toConnectionDocument(await getConnection(request.caller.store, nameOf(request)))),
      ),
  },
  {
    method: 'PATCH',
    path: '/api/connections/:connection',
    id: 'updateConnection',
    access: WRITE,
    params,
    body: {
      ...objectSchema(
        {
          kind: KIND,
          secrets: SECRETS,
          settings: SETTINGS,
          scopes: SCOPES,
          allowAccountChange: { type: 'boolean', default: false },
          reason: REASON,
        },
        [],
      ),
      additionalProperties: false,
    },
    response: ONE,
    summary: 'Replaces the given parts. New secrets need their kind, and make the connection active again.',
    handle: (request) =>
      answer(async () => {
        const { kind, secrets, settings, scopes, allowAccountChange } = bodyOf(request) as Partial<ConnectionBody>
        const { store } = request.caller
        const { provider } = await getConnection(store, nameOf(request))
        if ((kind === undefined) !== (secrets === undefined))
          throw new HttpError('INVALID_REQUEST', 'Set `kind` and `secrets` together.', {
            details: { reason: 'parameter_invalid' },
          })
        const edit = {
          ...(kind !== undefined && { credentials: buildCredentials(provider, kind, secrets ?? {}) }),
          ...(settings !== undefined && { settings }),
          ...(scopes !== undefined && { scopes }),
          ...(allowAccountChange !== undefined && { allowAccountChange }),
        }
        return sendData(
          request.reply,
          toConnectionDocument(await editConnection(store, nameOf(request), edit, toActor(request))),
        )
      }),
  },
  {
    method: 'POST',
    path: '/api/connections/:connection/test',
    id: 'testConnection',
    access: WRITE,
    params,
    response: objectSchema({
      data: objectSchema(
        {
          ok: { type: 'boolean' },
          account: { anyOf: [objectSchema({ id: TEXT, label: TEXT }), { type: 'null' }] },
          code: TEXT,
          message: TEXT,
        },
        ['ok'],
      ),
    }),
    summary: 'Asks the vendor whose account it is.',
    handle: (request) =>
      answer(async () => {
        const { ports } = request.context
        const { store } = request.caller
        return sendData(request.reply, await testConnection(store, nameOf(request), createConnectionRuntime(ports)))
      }),
  },
  ...(['disable', 'enable', 'revoke'] as const).map((act): Route => ({
    method: 'POST',
    path: `/api/connections/:connection/${act}`,
    id: `${act}Connection`,
    access: WRITE,
    params,
    body: { ...objectSchema({ reason: REASON }, []), additionalProperties: false },
    response: ONE,
    summary: SUMMARIES[act],
    handle: (request) =>
      answer(async () =>
        sendData(
          request.reply,
          toConnectionDocument(await ACTS[act](request.caller.store, nameOf(request), toActor(request))),
        ),
      ),
  })),
  {
    method: 'DELETE',
    path: '/api/connections/:connection',
    id: 'removeConnection',
    access: WRITE,
    params,
    response: objectSchema({ data: objectSchema({ removed: TEXT }) }),
    summary: 'Removes a connection with its credentials. Its syncs stop; their rows stay.',
    handle: (request) =>
      answer(async () => {
        await removeConnection(request.caller.store, nameOf(request), toActor(request))
        return sendData(request.reply, { removed: nameOf(request) })
      }),
  },
]

/** The errors of the caller, as HTTP. */
async function answer<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    if (!isSyncError(error)) throw error
    if (error.code === 'CONNECTION_UNKNOWN') throw new HttpError('NOT_FOUND', error.message)
    if (['CONNECTION_INVALID', 'CONNECTION_INACTIVE', 'NAME_TAKEN', 'NAME_INVALID'].includes(error.code))
      throw new HttpError('INVALID_REQUEST', error.message, { details: { reason: 'parameter_invalid' } })
    throw error
  }
}

function nameOf(request: RouteRequest): string {
  return pathParam(request, 'connection')
}

function bodyOf({ request }: RouteRequest): ConnectionBody {
  return (request.body ?? {}) as ConnectionBody
}

function toActor(request: RouteRequest): ConnectionActor {
  const { reason } = bodyOf(request)
  const { caller, context } = request
  return {
    actor: `api:${caller.name}`,
    at: context.ports.clock.now(),
    ...(reason !== undefined && { reason }),
  }
}
