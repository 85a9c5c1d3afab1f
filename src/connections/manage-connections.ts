import {
  isSyncError,
  SyncError,
  type Connection,
  type ConnectionCredentials,
  type ErrorCode,
  type JsonObject,
  type Ports,
  type SourceConnection,
  type SourceCredentials,
  type Store,
} from '../contract/index.ts'
import { checkName } from '../config/names.ts'
import { didYouMean } from '../values/did-you-mean.ts'
import { maskSecrets } from '../redaction/known-secrets.ts'
import { withAccessToken, withFormFields, type PlainRequest } from './authenticate-request.ts'
import { checkSettings } from './check-settings.ts'
import { VendorContexts } from './connect/vendor-context.ts'
import { registerCredentials, serializeCredentials } from './credentials.ts'
import type { FormAuth, Provider } from './define-provider.ts'
import { identifyAccount, type VendorAccount } from './identify-account.ts'
import { PROVIDERS } from './registry.ts'
import { createReplacedError } from './replaced-error.ts'
import { resolveProvider, templateValues, type ProviderOptions, type ResolvedProvider } from './resolve-provider.ts'

/** The person or program that changes a connection, for the audit log. */
export interface ConnectionActor {
  readonly actor: string
  readonly at: number
  readonly reason?: string
}

/** A new connection. */
export interface NewConnection {
  readonly name: string
  /** A shipped provider, such as `stripe`, or a name of your own. */
  readonly provider: string
  readonly credentials: ConnectionCredentials
  readonly settings?: JsonObject
  readonly scopes?: readonly string[]
}

/** Changes of a connection; absent ones stay. New credentials make it active again. */
export interface ConnectionEdit {
  readonly credentials?: ConnectionCredentials
  readonly settings?: JsonObject
  readonly scopes?: readonly string[]
  /** Another account than before is refused without it. */
  readonly allowAccountChange?: boolean
}

/** The result of a test. */
export type ConnectionTest =
  | { readonly ok: true; readonly account: VendorAccount | null }
  | { readonly ok: false; readonly code: ErrorCode; readonly message: string }

/** Everything that requests to vendors need. */
export interface ConnectionRuntime {
  readonly ports: Ports
  readonly vendors: VendorContexts
  /** The providers that the program has configured, by name. */
  readonly providers: Readonly<Record<string, ProviderOptions>>
}

export function createConnectionRuntime(
  ports: Ports,
  providers: Readonly<Record<string, ProviderOptions>> = {},
): ConnectionRuntime {
  return { ports, providers, vendors: new VendorContexts(ports) }
}

const WRITES_MAX = 5

/** Adds a connection. The credentials are stored sealed, and never returned. */
export async function addConnection(store: Store, given: NewConnection, by: ConnectionActor): Promise<Connection> {
  const { name, provider, credentials, settings = {}, scopes = [] } = given
  checkName('connection', name)
  checkName('provider', provider)
  checkCredentials(name, credentials)
  checkSettings(provider, settings)
  registerCredentials(credentials)
  const added = await store.putConnection(
    {
      name,
      provider,
      status: 'active',
      statusReason: null,
      settings,
      scopes: [...new Set(scopes)].toSorted(),
      account: null,
      replaces: null,
      credentials: serializeCredentials(credentials),
    },
    by,
  )
  if (added !== null) return added
  throw new SyncError(
    'NAME_TAKEN',
    `This tenant already has a connection ${name}. Run \`connections reauthorize\` to replace its credentials.`,
  )
}

/** Replaces settings or credentials. A changed account has to be allowed, because it changes what syncs read. */
export async function editConnection(
  store: Store,
  name: string,
  { credentials, settings, scopes, allowAccountChange = false }: ConnectionEdit,
  by: ConnectionActor,
): Promise<Connection> {
  if (credentials !== undefined) {
    checkCredentials(name, credentials)
    registerCredentials(credentials)
  }
  return change(store, name, async (found) => {
    if (settings !== undefined) checkSettings(found.provider, settings)
    const isDisabled = found.status === 'disabled'
    return store.putConnection(
      {
        name,
        provider: found.provider,
        // An operator stopped it; only an operator starts it again.
        ...(credentials === undefined || isDisabled
          ? { status: found.status, statusReason: found.statusReason }
          : { status: 'active', statusReason: null }),
        settings: settings ?? found.settings,
        scopes: scopes === undefined ? found.scopes : [...new Set(scopes)].toSorted(),
        // The account of other credentials is unknown until the vendor states it.
        account: allowAccountChange && credentials !== undefined ? null : found.account,
        replaces: found,
        ...(credentials !== undefined && { credentials: serializeCredentials(credentials) }),
      },
      by,
    )
  })
}

/** Asks the vendor whose account it is. The account is stored if none was known; another one is an error. */
export async function testConnection(
  store: Store,
  name: string,
  runtime: ConnectionRuntime,
  signal: AbortSignal = AbortSignal.timeout(60_000),
): Promise<ConnectionTest> {
  const found = await getConnection(store, name)
  try {
    const account = await askForAccount(store, found, runtime, signal)
    if (account === null) return { ok: true, account: null }
    if (found.account !== null && found.account.id !== account.id)
      return {
        ok: false,
        code: 'SCOPE_CHANGED',
        message: `The credentials belong to the account ${account.label}, but the connection was made for ${found.account.label}.`,
      }
    if (found.account?.label !== account.label) await storeAccount(store, found, account, runtime.ports.clock.now())
    return { ok: true, account }
  } catch (error) {
    if (!isSyncError(error)) throw error
    return { ok: false, code: error.code, message: error.message }
  }
}

export async function disableConnection(store: Store, name: string, by: ConnectionActor): Promise<Connection> {
  return setStatus(store, name, 'disabled', by)
}

/** Starts a disabled connection again. One without valid credentials needs to be authorized instead. */
export async function enableConnection(store: Store, name: string, by: ConnectionActor): Promise<Connection> {
  const { status } = await getConnection(store, name)
  if (status === 'active' || status === 'disabled') return setStatus(store, name, 'active', by)
  throw new SyncError(
    'CONNECTION_INACTIVE',
    `The connection ${name} has no valid credentials (${status}). Authorize it again with \`connections reauthorize\`.`,
  )
}

/** Deletes the credentials. The connection and its rows stay. */
export function revokeConnection(store: Store, name: string, by: ConnectionActor): Promise<Connection> {
  return change(store, name, (found) =>
    store.putConnection(
      {
        ...found,
        status: 'revoked',
        statusReason: maskSecrets(by.reason ?? 'the credentials were deleted'),
        scopes: [],
        replaces: found,
        credentials: serializeCredentials({ kind: 'none', fields: {} }),
      },
      withMaskedReason(by),
    ),
  )
}

/** Deletes a connection with its credentials. Its syncs stop; their rows stay. */
export async function removeConnection(store: Store, name: string, by: ConnectionActor): Promise<void> {
  if (!(await store.removeConnection(name, withMaskedReason(by)))) throw await createUnknownError(store, name)
}

export async function getConnection(store: Store, name: string): Promise<Connection> {
  const found = await store.connection(name)
  if (found !== null) return found
  throw await createUnknownError(store, name)
}

async function setStatus(
  store: Store,
  name: string,
  status: 'active' | 'disabled',
  { reason = '', ...by }: ConnectionActor,
): Promise<Connection> {
  if (!(await store.setConnectionStatus(name, { status, reason: maskSecrets(reason) }, by)))
    throw await createUnknownError(store, name)
  return getConnection(store, name)
}

/** The reason is stored in the audit log and shown. */
function withMaskedReason({ reason, ...by }: ConnectionActor): ConnectionActor {
  return reason === undefined ? by : { ...by, reason: maskSecrets(reason) }
}

/** Repeats a compare-and-swap with what is stored now. */
async function change(
  store: Store,
  name: string,
  write: (found: Connection) => Promise<Connection | null>,
): Promise<Connection> {
  for (let attempt = 0; attempt < WRITES_MAX; attempt++) {
    const written = await write(await getConnection(store, name))
    if (written !== null) return written
  }
  throw new SyncError('CONNECTION_CHANGED', `The connection ${name} is being changed by another process.`)
}

async function storeAccount(store: Store, asked: Connection, account: VendorAccount, at: number): Promise<void> {
  await change(store, asked.name, async (found) => {
    if (found.createdAt !== asked.createdAt) throw createReplacedError(asked.name)
    return store.putConnection({ ...found, account, replaces: found }, { actor: 'test', at })
  })
}

/** Null if the provider is not described, so that the vendor cannot be asked. */
async function askForAccount(
  store: Store,
  found: Connection,
  { ports, vendors, providers }: ConnectionRuntime,
  signal: AbortSignal,
): Promise<VendorAccount | null> {
  const provider = findProvider(found, providers)
  if (ports.connections === undefined || provider === null) return null
  const context = vendors.create(provider, signal)
  const opened = await ports.connections.open(store, found.name)
  const credentials = await opened.credentials(context)
  const settings = textSettings(opened)
  const secrets = credentials.kind === 'oauth' ? { access_token: credentials.accessToken } : {}
  return identifyAccount(
    provider,
    (request) => authenticate(request, provider, credentials, ports.clock.now()),
    templateValues(provider, settings, secrets),
    context,
  )
}

function findProvider(
  { provider, settings }: Connection,
  providers: Readonly<Record<string, ProviderOptions>>,
): ResolvedProvider | null {
  if (!Object.hasOwn(providers, provider) && !Object.hasOwn(PROVIDERS, provider)) return null
  const { base_url: baseUrl } = settings
  const own = typeof baseUrl === 'string' ? { baseUrl } : {}
  const { account } = (PROVIDERS as Readonly<Record<string, Provider>>)[provider] ?? {}
  if (account?.url.startsWith('{base_url}') === true && typeof baseUrl !== 'string') return null
  return resolveProvider(provider, { [provider]: { ...own, ...providers[provider] } })
}

function authenticate(
  request: PlainRequest,
  { form, name }: ResolvedProvider,
  credentials: SourceCredentials,
  now: number,
): PlainRequest {
  switch (credentials.kind) {
    case 'oauth':
      return withAccessToken(request, credentials.accessToken)
    case 'api_key': {
      const auth: FormAuth = form?.auth ?? { kind: 'header', header: 'authorization', field: 'key', prefix: 'Bearer ' }
      const field = auth.kind === 'header' ? auth.field : auth.kind === 'kraken' ? auth.key : 'key'
      return withFormFields(request, auth, { ...credentials.fields, [field]: credentials.key }, now)
    }
    case 'basic':
      return withFormFields(
        request,
        { kind: 'basic', user: 'user', password: 'password' },
        { user: credentials.user, password: credentials.password },
        now,
      )
    case 'none':
      throw new SyncError('CONNECTION_INACTIVE', `A connection at ${name} has no credentials.`)
    default:
      return credentials satisfies never
  }
}

function textSettings({ settings }: Pick<SourceConnection, 'settings'>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(settings).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}

/** Messages never quote a value. */
function checkCredentials(name: string, credentials: ConnectionCredentials): void {
  const fail = (what: string): never => {
    throw new SyncError('CONNECTION_INVALID', `The credentials of the connection ${name}: ${what}.`)
  }
  const { kind, fields } = credentials
  if (!Object.values(fields).every((value) => typeof value === 'string')) fail('a field is not a text')
  if (kind === 'api_key' && credentials.key === '') fail('the API key is empty')
  if (kind === 'basic' && credentials.user === '') fail('the user is empty')
  if (
    kind === 'oauth' &&
    credentials.accessToken === null &&
    credentials.refreshToken === null &&
    credentials.client === null
  )
    fail('there is neither an access token nor a refresh token')
}

async function createUnknownError(store: Store, name: string): Promise<SyncError> {
  const names = (await store.connections()).map((connection) => connection.name)
  return new SyncError(
    'CONNECTION_UNKNOWN',
    `This tenant has no connection ${JSON.stringify(name)}.${didYouMean(name, names)}`,
  )
}
