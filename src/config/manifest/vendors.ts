import { join } from 'node:path'
import type { Auth } from '../../sources/kit/auth.ts'
import type { SyncContext } from '../../contract/index.ts'
import { given, inMode, KNOWN, nameIn, object, pick, SECRET, TEXT, type Connector, type DiscoveredStream, type OpenedStream } from './connector.ts'
import type { ManifestStream } from './manifest.ts'
import type { JsonSchema } from '../schema.ts'

/** For tokens that expire: how to get the next. */
const OAUTH = object({ token_url: TEXT, client_id: SECRET, client_secret: SECRET, refresh_token: SECRET, scope: TEXT }, ['token_url', 'client_id'])

/** Beside the manifest. */
const TOKENS_FOLDER = '.tidemark/tokens'

/**
 * A source that rotates refresh tokens accepts each of them once, and revokes the grant when it sees an old one. So the newest
 * is kept in a file, sealed, before it is used: the next process goes on with it and not with the one of the manifest.
 */
async function authOf(oauth: any, folder: string): Promise<{ auth?: Auth }> {
  if (oauth === undefined) return {}
  const { clientCredentials, refreshToken } = await import('../../sources/kit/oauth.ts')
  const { token_url: tokenUrl, client_id: clientId, client_secret: clientSecret, refresh_token: seed, scope } = oauth
  const options = { tokenUrl, clientId, ...given({ clientSecret, scope }) }
  if (seed === undefined) return { auth: clientCredentials(options) }
  const { fileTokens } = await import('../../connector/file-token-store.ts')
  return { auth: refreshToken({ ...options, refreshToken: seed, tokens: fileTokens({ folder: join(folder, TOKENS_FOLDER) }) }) }
}

const OF_SOURCE = { key: KNOWN, cursor: KNOWN }
const NO_WINDOW = { not: {}, description: 'of a connector that follows a cursor: this one is read whole, or told by the source what is new, and leaves nothing to be read again' } as const

interface Fixed {
  readonly isFollowed: boolean
  readonly config: JsonSchema
  open(config: any, folder: string): Promise<Readonly<Record<string, OpenedStream>>>
}

/** A system whose streams are known: `options.stream` names one, or the end of the stream's id. */
function fixed({ isFollowed, config, open }: Fixed): Connector {
  return {
    isFollowed, config,
    stream: { properties: { options: object({ stream: TEXT }), select: KNOWN, safety_window: NO_WINDOW, ...OF_SOURCE } },
    async open(given, folder) {
      const streams = await open(given, folder)
      return { stream: (stream) => pick(streams, stream) }
    },
    discover: async (given, folder) => Object.keys(await open(given, folder)).map((id) => ({ id, key: ['id'], candidates: [] })),
  }
}

interface Named {
  readonly isFollowed: boolean
  readonly config: JsonSchema
  /** What its streams are called: `options.object`, `options.table`. */
  readonly noun: string
  readonly selects: boolean
  /** Whether a cycle can begin before its position. */
  readonly hasWindow?: boolean
  open(config: any, folder: string): Promise<{
    stream(name: string, stream: ManifestStream): OpenedStream
    /** `names`: those that the manifest has already. */
    discover(context: SyncContext, names: readonly string[]): Promise<DiscoveredStream[]>
  }>
}

/** A system whose streams are the user's own: `options` names one, or the end of the stream's id. */
function named({ isFollowed, config, noun, selects, hasWindow = false, open }: Named): Connector {
  return {
    isFollowed, config,
    stream: { properties: { options: object({ [noun]: TEXT }), ...(!selects && { select: KNOWN }), ...(!hasWindow && { safety_window: NO_WINDOW }), ...OF_SOURCE } },
    async open(given, folder) {
      const source = await open(given, folder)
      return { stream: (stream) => inMode(source.stream(nameIn(stream, noun), stream), stream) }
    },
    // Questions outside of any cycle: they need nothing else of a context.
    discover: async (given, folder, context, declared = []) => (await open(given, folder)).discover(context as SyncContext, declared.map((stream) => nameIn(stream, noun))),
  }
}

const oneOf = (config: JsonSchema, ...ways: string[][]): JsonSchema => ({ ...config, oneOf: ways.map((required) => ({ required })) })

export const stripe = fixed({
  isFollowed: true,
  config: object({ api_key: SECRET, base_url: TEXT }, ['api_key']),
  async open({ api_key: apiKey, base_url: baseUrl }) {
    const { stripe: open } = await import('../../sources/stripe/source.ts')
    return open({ apiKey, ...given({ baseUrl }) })
  },
})

export const linear = fixed({
  isFollowed: false,
  config: object({ api_key: SECRET, base_url: TEXT }, ['api_key']),
  async open({ api_key: apiKey, base_url: baseUrl }) {
    const { linear: open } = await import('../../sources/linear/source.ts')
    return open({ apiKey, ...given({ baseUrl }) })
  },
})

export const github = fixed({
  isFollowed: false,
  config: object({ token: SECRET, base_url: TEXT, owner: TEXT }, ['token']),
  async open({ token, base_url: baseUrl, owner }) {
    const { github: open } = await import('../../sources/github/source.ts')
    return { ...open({ token, ...given({ baseUrl, owner }) }) }
  },
})

export const kraken = fixed({
  isFollowed: true,
  config: object({ api_key: SECRET, api_secret: SECRET, base_url: TEXT, tier: { enum: ['starter', 'intermediate', 'pro'] } }, ['api_key', 'api_secret']),
  async open({ api_key: apiKey, api_secret: apiSecret, base_url: baseUrl, tier }) {
    const { kraken: open } = await import('../../sources/kraken/source.ts')
    return open({ apiKey, apiSecret, ...given({ baseUrl, tier }) })
  },
})

export const bookmarks = fixed({
  isFollowed: true,
  config: object({ user_id: TEXT, token: SECRET, base_url: TEXT }, ['user_id', 'token']),
  async open({ user_id: userId, token, base_url: baseUrl }) {
    const { bookmarks: open } = await import('../../sources/bookmarks/source.ts')
    return { bookmarks: open({ userId, token, ...given({ baseUrl }) }) }
  },
})

export const githubStars = fixed({
  isFollowed: true,
  config: object({ token: SECRET, base_url: TEXT, user: TEXT }, ['token']),
  async open({ token, base_url: baseUrl, user }) {
    const { githubStars: open } = await import('../../sources/github-stars/source.ts')
    return { stars: open({ token, ...given({ baseUrl, user }) }) }
  },
})

export const hubspot = named({
  isFollowed: true, noun: 'object', selects: true,
  config: oneOf(object({ access_token: SECRET, oauth: OAUTH, base_url: TEXT }), ['access_token'], ['oauth']),
  async open({ access_token: accessToken, oauth, base_url: baseUrl }, folder) {
    const { hubspot: open } = await import('../../sources/hubspot/source.ts')
    const options = { ...(await authOf(oauth, folder)), ...given({ accessToken, baseUrl }) }
    return {
      stream: (name, { select }) => open({ ...options, ...(select !== undefined && { properties: { [name]: select } }) }).object(name),
      discover: (context) => open(options).discover(context),
    }
  },
})

export const salesforce = named({
  isFollowed: true, noun: 'object', selects: true, hasWindow: true,
  config: oneOf(object({ instance_url: TEXT, access_token: SECRET, oauth: OAUTH, api_version: TEXT }, ['instance_url']), ['access_token'], ['oauth']),
  async open({ instance_url: instanceUrl, access_token: accessToken, oauth, api_version: apiVersion }, folder) {
    const { salesforce: open } = await import('../../sources/salesforce/source.ts')
    const source = open({ instanceUrl, ...given({ accessToken, apiVersion }), ...(await authOf(oauth, folder)) })
    return { stream: (name, { select, safety_window: safetyWindow }) => source.object(name, given({ fields: select, safetyWindow })), discover: source.discover }
  },
})

export const servicenow = named({
  isFollowed: true, noun: 'table', selects: true, hasWindow: true,
  config: oneOf(object({ instance_url: TEXT, user: SECRET, password: SECRET, oauth: OAUTH }, ['instance_url']), ['user', 'password'], ['oauth']),
  async open({ instance_url: instanceUrl, user, password, oauth }, folder) {
    const { servicenow: open } = await import('../../sources/servicenow/source.ts')
    const source = open({ instanceUrl, ...given({ user, password }), ...(await authOf(oauth, folder)) })
    return { stream: (name, { select, safety_window: safetyWindow }) => source.table(name, given({ fields: select, safetyWindow })), discover: source.discover }
  },
})

export const airtable = named({
  isFollowed: false, noun: 'table', selects: false,
  config: object({ base_id: TEXT, token: SECRET, base_url: TEXT }, ['base_id', 'token']),
  async open({ base_id: baseId, token, base_url: baseUrl }) {
    const { airtable: open } = await import('../../sources/airtable/source.ts')
    const source = open({ baseId, token, ...given({ baseUrl }) })
    return { stream: (name) => source.table(name), discover: source.discover }
  },
})
