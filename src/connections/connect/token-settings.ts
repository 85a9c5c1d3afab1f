import { SyncError, type JsonObject } from '../../contract/index.ts'
import { isPublicHost } from '../../platform/public-address.ts'
import { readPath } from '../../sources/kit/token-endpoint.ts'
import { requireOAuth, type ResolvedProvider } from '../resolve-provider.ts'

const SETTING_CHARS_MAX = 2_048

/** Settings that the token answer states, such as the URL of an instance. A URL must be public and use https. */
export function readTokenSettings(provider: ResolvedProvider, body: JsonObject): Record<string, string> {
  const { settingsFromTokens = {} } = requireOAuth(provider)
  return Object.fromEntries(
    Object.entries(settingsFromTokens).map(([name, path]) => {
      const value = readPath(body, path)
      if (typeof value !== 'string' || value === '' || value.length > SETTING_CHARS_MAX)
        throw new SyncError('SOURCE_INVALID', `${provider.title} returned tokens without ${path}.`)
      return [name, name.endsWith('_url') ? checkUrl(provider, path, value) : value]
    }),
  )
}

function checkUrl({ title, baseUrl }: ResolvedProvider, path: string, value: string): string {
  const url = URL.canParse(value) ? new URL(value) : null
  const isOfProgram = url !== null && baseUrl !== null && url.origin === new URL(baseUrl).origin
  const isAllowed = url !== null && url.protocol === 'https:' && url.port === '' && isPublicHost(url.hostname)
  if (url === null || url.username !== '' || url.password !== '' || !(isOfProgram || isAllowed))
    throw new SyncError('SOURCE_INVALID', `${title} returned tokens whose ${path} is not a public https URL.`)
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}
