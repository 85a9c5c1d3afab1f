import { SyncError } from '../../contract/index.ts'
import type { apiKey as apiKeyOf, Auth } from './auth.ts'
import { objectSchema, SECRET_SCHEMA, TEXT_SCHEMA, whenEquals, type SchemaValue } from '../../values/config-schema.ts'
import type { SourceProject } from './define-source.ts'
import { omitUndefined } from './omit-undefined.ts'

/** HTTP authentication. */
export const AUTH_SCHEMA = {
  type: 'object',
  required: ['kind'],
  properties: {
    kind: { enum: ['bearer', 'api_key', 'basic', 'oauth', 'session'] },
    token: SECRET_SCHEMA,
    key: SECRET_SCHEMA,
    user: SECRET_SCHEMA,
    password: SECRET_SCHEMA,
    header: TEXT_SCHEMA,
    query: TEXT_SCHEMA,
    prefix: { type: 'string' },
    token_url: TEXT_SCHEMA,
    client_id: SECRET_SCHEMA,
    client_secret: SECRET_SCHEMA,
    refresh_token: SECRET_SCHEMA,
    scope: TEXT_SCHEMA,
    fields: { type: 'object', additionalProperties: { type: 'string' } },
    client_auth: { enum: ['basic', 'form'] },
    login_url: TEXT_SCHEMA,
    credentials: {
      type: 'object',
      additionalProperties: SECRET_SCHEMA,
      description: 'the members of the login request, each a secret',
    },
    token_at: TEXT_SCHEMA,
  },
  additionalProperties: false,
  allOf: [
    whenEquals('kind', 'bearer', { required: ['token'] }),
    whenEquals('kind', 'api_key', { required: ['key'] }),
    whenEquals('kind', 'basic', { required: ['user', 'password'] }),
    whenEquals('kind', 'oauth', { required: ['token_url', 'client_id'] }),
    whenEquals('kind', 'session', { required: ['login_url', 'credentials', 'token_at'] }),
  ],
} as const

export async function createAuth(
  auth: SchemaValue<typeof AUTH_SCHEMA> | undefined,
  tokens: SourceProject['tokens'],
): Promise<{ auth?: Auth }> {
  if (auth === undefined) return {}
  const { apiKey, basic, bearer } = await import('./auth.ts')
  switch (auth.kind) {
    case 'bearer':
      return { auth: bearer(auth.token) }
    case 'basic':
      return { auth: basic(auth) }
    case 'api_key':
      return { auth: apiKey(toKeyLocation(auth)) }
    case 'oauth':
      return createOAuth(auth, tokens)
    case 'session': {
      const { session } = await import('./session-auth.ts')
      const { login_url: loginUrl, token_at: token, credentials, header, prefix } = auth
      return { auth: session({ loginUrl, credentials, token, ...omitUndefined({ header, prefix }) }) }
    }
    default:
      throw auth satisfies never
  }
}

function toKeyLocation({
  key,
  header,
  query,
  prefix,
}: {
  readonly key: string
  readonly header?: string
  readonly query?: string
  readonly prefix?: string
}): Parameters<typeof apiKeyOf>[0] {
  if ((header === undefined) === (query === undefined))
    throw new SyncError('SYNC_INVALID', '`auth`: set `header` or `query`, where the API key is sent.')
  return query === undefined ? { header: header ?? '', key, ...omitUndefined({ prefix }) } : { query, key }
}

/** How to refresh tokens that expire. */
export const OAUTH_SCHEMA = objectSchema(
  {
    token_url: TEXT_SCHEMA,
    client_id: SECRET_SCHEMA,
    client_secret: SECRET_SCHEMA,
    refresh_token: SECRET_SCHEMA,
    scope: TEXT_SCHEMA,
    fields: { type: 'object', additionalProperties: { type: 'string' } },
    client_auth: { enum: ['basic', 'form'] },
  },
  ['token_url', 'client_id'],
)

/**
 * A vendor that rotates refresh tokens accepts each token once, and revokes the grant when an old one is used. So the
 * newest token is stored durably before it is used, and the next process continues with it.
 */
export async function createOAuth(
  oauth: SchemaValue<typeof OAUTH_SCHEMA> | undefined,
  tokens: SourceProject['tokens'],
): Promise<{ auth?: Auth }> {
  if (oauth === undefined) return {}
  const { clientCredentials, refreshToken } = await import('./oauth.ts')
  const { token_url: tokenUrl, client_id: clientId, client_secret: clientSecret, refresh_token: seed, scope } = oauth
  const { fields, client_auth: clientAuth } = oauth
  const options = { tokenUrl, clientId, ...omitUndefined({ clientSecret, scope, fields, clientAuth }) }
  return {
    auth: seed === undefined ? clientCredentials(options) : refreshToken({ ...options, refreshToken: seed, tokens }),
  }
}
