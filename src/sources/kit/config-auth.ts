import type { Auth } from './auth.ts'
import { objectSchema, SECRET_SCHEMA, TEXT_SCHEMA, whenEquals, type SchemaValue } from '../../values/config-schema.ts'
import type { SourceProject } from './define-source.ts'
import { omitUndefined } from './omit-undefined.ts'

/** HTTP authentication. */
export const AUTH_SCHEMA = {
  type: 'object',
  required: ['kind'],
  properties: {
    kind: { enum: ['bearer', 'api_key', 'basic'] },
    token: SECRET_SCHEMA,
    key: SECRET_SCHEMA,
    user: SECRET_SCHEMA,
    password: SECRET_SCHEMA,
    header: TEXT_SCHEMA,
    prefix: { type: 'string' },
  },
  additionalProperties: false,
  allOf: [
    whenEquals('kind', 'bearer', { required: ['token'] }),
    whenEquals('kind', 'api_key', { required: ['key', 'header'] }),
    whenEquals('kind', 'basic', { required: ['user', 'password'] }),
  ],
} as const

export async function createAuth(auth: SchemaValue<typeof AUTH_SCHEMA> | undefined): Promise<{ auth?: Auth }> {
  if (auth === undefined) return {}
  const { apiKey, basic, bearer } = await import('./auth.ts')
  switch (auth.kind) {
    case 'bearer':
      return { auth: bearer(auth.token) }
    case 'basic':
      return { auth: basic(auth) }
    case 'api_key':
      return { auth: apiKey(auth) }
    default:
      throw auth satisfies never
  }
}

/** How to refresh tokens that expire. */
export const OAUTH_SCHEMA = objectSchema(
  {
    token_url: TEXT_SCHEMA,
    client_id: SECRET_SCHEMA,
    client_secret: SECRET_SCHEMA,
    refresh_token: SECRET_SCHEMA,
    scope: TEXT_SCHEMA,
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
  const options = { tokenUrl, clientId, ...omitUndefined({ clientSecret, scope }) }
  return {
    auth: seed === undefined ? clientCredentials(options) : refreshToken({ ...options, refreshToken: seed, tokens }),
  }
}
