import type { Auth } from '../../sources/kit/auth.ts'
import { SECRET, TEXT } from './connector.ts'
import { when } from './when.ts'

/** Who is asking, over HTTP. */
export const AUTH = {
  type: 'object',
  required: ['kind'],
  properties: { kind: { enum: ['bearer', 'api_key', 'basic'] }, token: SECRET, key: SECRET, user: SECRET, password: SECRET, header: TEXT, prefix: { type: 'string' } },
  additionalProperties: false,
  allOf: [when('kind', 'bearer', { required: ['token'] }), when('kind', 'api_key', { required: ['key', 'header'] }), when('kind', 'basic', { required: ['user', 'password'] })],
}

export async function authOf(auth: any): Promise<{ auth?: Auth }> {
  if (auth === undefined) return {}
  const { apiKey, basic, bearer } = await import('../../sources/kit/auth.ts')
  return { auth: auth.kind === 'bearer' ? bearer(auth.token) : auth.kind === 'basic' ? basic(auth) : apiKey(auth) }
}
