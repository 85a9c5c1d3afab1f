import { join } from 'node:path'
import type { Auth } from '../../sources/kit/auth.ts'
import type { SyncContext } from '../../contract/index.ts'
import {
  omitUndefined,
  applyMode,
  SET_BY_CONNECTOR,
  resolveStreamName,
  objectSchema,
  selectStream,
  SECRET_SCHEMA,
  TEXT_SCHEMA,
  type Connector,
  type DiscoveredStream,
  type ConnectorStream,
} from './connector.ts'
import type { ManifestStream } from './manifest.ts'
import type { JsonSchema } from '../../worker/schema.ts'

/** How to refresh tokens that expire. */
const OAUTH_SCHEMA = objectSchema(
  {
    token_url: TEXT_SCHEMA,
    client_id: SECRET_SCHEMA,
    client_secret: SECRET_SCHEMA,
    refresh_token: SECRET_SCHEMA,
    scope: TEXT_SCHEMA,
  },
  ['token_url', 'client_id'],
)

/** The folder for refresh tokens, next to the manifest. */
const TOKENS_FOLDER = '.tidemark/tokens'

/**
 * A source that rotates refresh tokens accepts each token once, and revokes the grant when an old one is used. So the newest
 * token is stored encrypted in a file before it is used, and the next process continues with it.
 */
async function createOAuth(oauth: any, folder: string): Promise<{ auth?: Auth }> {
  if (oauth === undefined) return {}
  const { clientCredentials, refreshToken } = await import('../../sources/kit/oauth.ts')
  const { token_url: tokenUrl, client_id: clientId, client_secret: clientSecret, refresh_token: seed, scope } = oauth
  const options = { tokenUrl, clientId, ...omitUndefined({ clientSecret, scope }) }
  if (seed === undefined) return { auth: clientCredentials(options) }
  const { fileTokens } = await import('../../connector/file-token-store.ts')
  return {
    auth: refreshToken({ ...options, refreshToken: seed, tokens: fileTokens({ folder: join(folder, TOKENS_FOLDER) }) }),
  }
}

const FIELDS_SET_BY_SOURCE = { key: SET_BY_CONNECTOR, cursor: SET_BY_CONNECTOR }
const NO_SAFETY_WINDOW = {
  not: {},
  description: 'not supported by this connector: it reads everything, or the source reports the changes',
} as const

interface FixedStreamsVendor {
  readonly followsChanges: boolean
  readonly config: JsonSchema
  open(config: any, folder: string): Promise<Readonly<Record<string, ConnectorStream>>>
}

/** A connector with a fixed set of streams, selected by `options.stream` or the last part of the stream id. */
function defineFixedStreamsVendor({ followsChanges: isFollowed, config, open }: FixedStreamsVendor): Connector {
  return {
    followsChanges: isFollowed,
    config,
    stream: {
      properties: {
        options: objectSchema({ stream: TEXT_SCHEMA }),
        select: SET_BY_CONNECTOR,
        safety_window: NO_SAFETY_WINDOW,
        ...FIELDS_SET_BY_SOURCE,
      },
    },
    async open(given, folder) {
      const streams = await open(given, folder)
      return { stream: (stream) => selectStream(streams, stream) }
    },
    discover: async (given, folder) =>
      Object.keys(await open(given, folder)).map((id) => ({ id, key: ['id'], candidates: [] })),
  }
}

interface NamedStreamsVendor {
  readonly followsChanges: boolean
  readonly config: JsonSchema
  /** The option that names a stream, such as `object` or `table`. */
  readonly streamOption: string
  readonly supportsSelect: boolean
  /** Whether a cycle can start before its cursor. */
  readonly supportsSafetyWindow?: boolean
  open(
    config: any,
    folder: string,
  ): Promise<{
    stream(name: string, stream: ManifestStream): ConnectorStream
    /** `names` are the streams of the manifest. */
    discover(context: SyncContext, names: readonly string[]): Promise<DiscoveredStream[]>
  }>
}

/** A connector with user-defined streams, selected by `options` or the last part of the stream id. */
function defineNamedStreamsVendor({
  followsChanges: isFollowed,
  config,
  streamOption: noun,
  supportsSelect: selects,
  supportsSafetyWindow: hasWindow = false,
  open,
}: NamedStreamsVendor): Connector {
  return {
    followsChanges: isFollowed,
    config,
    stream: {
      properties: {
        options: objectSchema({ [noun]: TEXT_SCHEMA }),
        ...(!selects && { select: SET_BY_CONNECTOR }),
        ...(!hasWindow && { safety_window: NO_SAFETY_WINDOW }),
        ...FIELDS_SET_BY_SOURCE,
      },
    },
    async open(given, folder) {
      const source = await open(given, folder)
      return { stream: (stream) => applyMode(source.stream(resolveStreamName(stream, noun), stream), stream) }
    },
    // Discovery runs outside a cycle and needs only these parts of the context.
    discover: async (given, folder, context, declared = []) =>
      (await open(given, folder)).discover(
        context as SyncContext,
        declared.map((stream) => resolveStreamName(stream, noun)),
      ),
  }
}

const requireOneOf = (config: JsonSchema, ...ways: string[][]): JsonSchema => ({
  ...config,
  oneOf: ways.map((required) => ({ required })),
})

export const stripe = defineFixedStreamsVendor({
  followsChanges: true,
  config: objectSchema({ api_key: SECRET_SCHEMA, base_url: TEXT_SCHEMA }, ['api_key']),
  async open({ api_key: apiKey, base_url: baseUrl }) {
    const { stripe: open } = await import('../../sources/stripe/source.ts')
    return open({ apiKey, ...omitUndefined({ baseUrl }) })
  },
})

export const linear = defineFixedStreamsVendor({
  followsChanges: false,
  config: objectSchema({ api_key: SECRET_SCHEMA, base_url: TEXT_SCHEMA }, ['api_key']),
  async open({ api_key: apiKey, base_url: baseUrl }) {
    const { linear: open } = await import('../../sources/linear/source.ts')
    return open({ apiKey, ...omitUndefined({ baseUrl }) })
  },
})

export const github = defineFixedStreamsVendor({
  followsChanges: false,
  config: objectSchema({ token: SECRET_SCHEMA, base_url: TEXT_SCHEMA, owner: TEXT_SCHEMA }, ['token']),
  async open({ token, base_url: baseUrl, owner }) {
    const { github: open } = await import('../../sources/github/source.ts')
    return { ...open({ token, ...omitUndefined({ baseUrl, owner }) }) }
  },
})

export const kraken = defineFixedStreamsVendor({
  followsChanges: true,
  config: objectSchema(
    {
      api_key: SECRET_SCHEMA,
      api_secret: SECRET_SCHEMA,
      base_url: TEXT_SCHEMA,
      tier: { enum: ['starter', 'intermediate', 'pro'] },
    },
    ['api_key', 'api_secret'],
  ),
  async open({ api_key: apiKey, api_secret: apiSecret, base_url: baseUrl, tier }) {
    const { kraken: open } = await import('../../sources/kraken/source.ts')
    return open({ apiKey, apiSecret, ...omitUndefined({ baseUrl, tier }) })
  },
})

export const bookmarks = defineFixedStreamsVendor({
  followsChanges: true,
  config: objectSchema({ user_id: TEXT_SCHEMA, token: SECRET_SCHEMA, base_url: TEXT_SCHEMA }, ['user_id', 'token']),
  async open({ user_id: userId, token, base_url: baseUrl }) {
    const { bookmarks: open } = await import('../../sources/bookmarks/source.ts')
    return { bookmarks: open({ userId, token, ...omitUndefined({ baseUrl }) }) }
  },
})

export const githubStars = defineFixedStreamsVendor({
  followsChanges: true,
  config: objectSchema({ token: SECRET_SCHEMA, base_url: TEXT_SCHEMA, user: TEXT_SCHEMA }, ['token']),
  async open({ token, base_url: baseUrl, user }) {
    const { githubStars: open } = await import('../../sources/github-stars/source.ts')
    return { stars: open({ token, ...omitUndefined({ baseUrl, user }) }) }
  },
})

export const hubspot = defineNamedStreamsVendor({
  followsChanges: true,
  streamOption: 'object',
  supportsSelect: true,
  config: requireOneOf(
    objectSchema({ access_token: SECRET_SCHEMA, oauth: OAUTH_SCHEMA, base_url: TEXT_SCHEMA }),
    ['access_token'],
    ['oauth'],
  ),
  async open({ access_token: accessToken, oauth, base_url: baseUrl }, folder) {
    const { hubspot: open } = await import('../../sources/hubspot/source.ts')
    const options = { ...(await createOAuth(oauth, folder)), ...omitUndefined({ accessToken, baseUrl }) }
    return {
      stream: (name, { select }) =>
        open({ ...options, ...(select !== undefined && { properties: { [name]: select } }) }).object(name),
      discover: (context) => open(options).discover(context),
    }
  },
})

export const salesforce = defineNamedStreamsVendor({
  followsChanges: true,
  streamOption: 'object',
  supportsSelect: true,
  supportsSafetyWindow: true,
  config: requireOneOf(
    objectSchema(
      { instance_url: TEXT_SCHEMA, access_token: SECRET_SCHEMA, oauth: OAUTH_SCHEMA, api_version: TEXT_SCHEMA },
      ['instance_url'],
    ),
    ['access_token'],
    ['oauth'],
  ),
  async open({ instance_url: instanceUrl, access_token: accessToken, oauth, api_version: apiVersion }, folder) {
    const { salesforce: open } = await import('../../sources/salesforce/source.ts')
    const source = open({
      instanceUrl,
      ...omitUndefined({ accessToken, apiVersion }),
      ...(await createOAuth(oauth, folder)),
    })
    return {
      stream: (name, { select, safety_window: safetyWindow }) =>
        source.object(name, omitUndefined({ fields: select, safetyWindow })),
      discover: source.discover,
    }
  },
})

export const servicenow = defineNamedStreamsVendor({
  followsChanges: true,
  streamOption: 'table',
  supportsSelect: true,
  supportsSafetyWindow: true,
  config: requireOneOf(
    objectSchema({ instance_url: TEXT_SCHEMA, user: SECRET_SCHEMA, password: SECRET_SCHEMA, oauth: OAUTH_SCHEMA }, [
      'instance_url',
    ]),
    ['user', 'password'],
    ['oauth'],
  ),
  async open({ instance_url: instanceUrl, user, password, oauth }, folder) {
    const { servicenow: open } = await import('../../sources/servicenow/source.ts')
    const source = open({ instanceUrl, ...omitUndefined({ user, password }), ...(await createOAuth(oauth, folder)) })
    return {
      stream: (name, { select, safety_window: safetyWindow }) =>
        source.table(name, omitUndefined({ fields: select, safetyWindow })),
      discover: source.discover,
    }
  },
})

export const airtable = defineNamedStreamsVendor({
  followsChanges: false,
  streamOption: 'table',
  supportsSelect: false,
  config: objectSchema({ base_id: TEXT_SCHEMA, token: SECRET_SCHEMA, base_url: TEXT_SCHEMA }, ['base_id', 'token']),
  async open({ base_id: baseId, token, base_url: baseUrl }) {
    const { airtable: open } = await import('../../sources/airtable/source.ts')
    const source = open({ baseId, token, ...omitUndefined({ baseUrl }) })
    return { stream: (name) => source.table(name), discover: source.discover }
  },
})
