import { SyncError } from '../../contract/index.ts'
import { resolveProvider, type ProviderOptions } from '../resolve-provider.ts'
import { checkAllowedUrl } from './return-to.ts'

/** Options of the connect flow. */
export interface ConnectOptions {
  /**
   * The URL at which browsers reach the mounted handler, with its prefix: `https://app.example.com/tidemark`. Register
   * `<publicUrl>/connect/callback/<provider>` as the redirect URI at each vendor.
   */
  readonly publicUrl: string
  /** URLs that a flow may return to. Everything below one of them is allowed. Default: none. */
  readonly returnTo?: readonly string[]
  /** The name of your program on the page. Default: the host of `publicUrl`. */
  readonly appName?: string
  /** The vendors that accounts can be connected at, by name. */
  readonly providers: Readonly<Record<string, ProviderOptions>>
  /** How long a link can be used. Default: 15 minutes. */
  readonly sessionMinutes?: number
}

/** Options with defaults. */
export interface CheckedConnectOptions {
  readonly publicUrl: URL
  readonly returnTo: readonly string[]
  readonly appName: string
  readonly providers: Readonly<Record<string, ProviderOptions>>
  readonly sessionMs: number
}

const SESSION_MINUTES = 15
const SESSION_MINUTES_MAX = 60

/** Throws ARGUMENT_INVALID or CONNECTION_INVALID for options that a flow could not work with. */
export function checkConnectOptions(options: ConnectOptions): CheckedConnectOptions {
  const { returnTo = [], providers, sessionMinutes = SESSION_MINUTES } = options
  const publicUrl = URL.canParse(options.publicUrl) ? new URL(options.publicUrl) : null
  if (publicUrl === null || publicUrl.search !== '' || publicUrl.hash !== '' || publicUrl.username !== '')
    throw new SyncError(
      'ARGUMENT_INVALID',
      '`connect.publicUrl` is not a URL such as https://app.example.com/tidemark.',
    )
  // Without TLS, the cookie that binds a link to its browser could be read and replaced on the way.
  if (publicUrl.protocol !== 'https:' && !(publicUrl.protocol === 'http:' && isLoopbackName(publicUrl.hostname)))
    throw new SyncError('ARGUMENT_INVALID', '`connect.publicUrl` must use https, except on localhost.')
  if (!(sessionMinutes > 0 && sessionMinutes <= SESSION_MINUTES_MAX))
    throw new SyncError('ARGUMENT_INVALID', `\`connect.sessionMinutes\` must be between 0 and ${SESSION_MINUTES_MAX}.`)
  for (const url of returnTo) checkAllowedUrl(url)
  for (const name of Object.keys(providers)) {
    if (!/^[a-z0-9][a-z0-9-]{0,62}$/.test(name))
      throw new SyncError('ARGUMENT_INVALID', `\`connect.providers\` has the invalid name ${JSON.stringify(name)}.`)
    resolveProvider(name, providers)
  }
  publicUrl.pathname = publicUrl.pathname.replace(/\/+$/, '')
  return {
    publicUrl,
    returnTo,
    appName: options.appName ?? publicUrl.host,
    providers,
    sessionMs: sessionMinutes * 60_000,
  }
}

function isLoopbackName(name: string): boolean {
  return name === 'localhost' || name === '127.0.0.1' || name === '[::1]' || name.endsWith('.localhost')
}
