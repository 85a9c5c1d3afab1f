import { SyncError, type ConnectionCredentials } from '../contract/index.ts'
import { registerSecret } from '../redaction/known-secrets.ts'

/** The JSON text that the store seals. */
export function serializeCredentials(credentials: ConnectionCredentials): string {
  return JSON.stringify(credentials)
}

/** Parses credentials that the store returned, and registers their secrets, so that no log shows them. */
export function parseCredentials(name: string, text: string): ConnectionCredentials {
  const credentials = parseObject(text)
  if (credentials === null)
    throw new SyncError('CONNECTION_INVALID', `The stored credentials of the connection ${name} cannot be read.`)
  registerCredentials(credentials)
  return credentials
}

/** Masks the secrets of credentials in logs, errors and traces of this process. */
export function registerCredentials(credentials: ConnectionCredentials): void {
  for (const secret of listSecrets(credentials)) registerSecret(secret)
}

function listSecrets(credentials: ConnectionCredentials): string[] {
  const fields = Object.values(credentials.fields)
  switch (credentials.kind) {
    case 'oauth': {
      const { accessToken, refreshToken, previousRefreshToken, client } = credentials
      const found = [accessToken, refreshToken, previousRefreshToken, client?.clientSecret ?? null]
      return [...fields, ...found.filter((secret) => secret !== null)]
    }
    case 'api_key':
      return [...fields, credentials.key]
    case 'basic':
      return [...fields, credentials.password]
    case 'none':
      return fields
    default:
      return credentials satisfies never
  }
}

function parseObject(text: string): ConnectionCredentials | null {
  try {
    const value = JSON.parse(text) as ConnectionCredentials | null
    return typeof value === 'object' && value !== null && typeof value.fields === 'object' ? value : null
  } catch {
    return null
  }
}
