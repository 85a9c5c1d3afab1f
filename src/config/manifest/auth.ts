import type { Auth } from '../../sources/kit/auth.ts'
import { SECRET_SCHEMA, TEXT_SCHEMA } from './connector.ts'
import { whenEquals } from './when-equals.ts'

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
}

export async function createAuth(auth: any): Promise<{ auth?: Auth }> {
  if (auth === undefined) return {}
  const { apiKey, basic, bearer } = await import('../../sources/kit/auth.ts')
  return { auth: auth.kind === 'bearer' ? bearer(auth.token) : auth.kind === 'basic' ? basic(auth) : apiKey(auth) }
}
