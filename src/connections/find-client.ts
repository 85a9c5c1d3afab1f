import { isSyncError, type Connection, type Secrets } from '../contract/index.ts'
import { fillUrl } from './fill-template.ts'
import { PROVIDERS } from './registry.ts'
import { requireOAuth, resolveProvider, templateValues, type ProviderOptions } from './resolve-provider.ts'
import type { ProviderClient, SourceConnectionsOptions } from './source-connections.ts'

export interface ClientOptions {
  /** The providers of the connect flow, with the clients that the program registered. */
  readonly providers?: Readonly<Record<string, ProviderOptions>>
  /** For a provider that is not listed: the secrets `HUBSPOT_CLIENT_ID` and `HUBSPOT_CLIENT_SECRET`. */
  readonly secretsOf: (tenant: string) => Secrets
}

/** Finds the OAuth client that renews the tokens of a connection. Secrets are read each time, so they can rotate. */
export function createClientFinder({
  providers = {},
  secretsOf,
}: ClientOptions): SourceConnectionsOptions['findClient'] {
  return ({ provider: name, settings }, tenant): ProviderClient | null => {
    const given = Object.hasOwn(providers, name) ? providers[name] : readClient(name, secretsOf(tenant))
    if (given === null || given === undefined) return null
    const provider = resolveProvider(name, { [name]: given })
    if (provider.client === null || provider.oauth === undefined) return null
    const { tokenUrl, clientAuth, tokenFormat, tokensAt } = requireOAuth(provider)
    return {
      tokenUrl: fillUrl(tokenUrl, templateValues(provider, textSettings(settings))).href,
      clientId: provider.client.id,
      clientSecret: provider.client.secret,
      clientAuth,
      scope: null,
      parameters: {},
      ...(tokenFormat !== undefined && { tokenFormat }),
      ...(tokensAt !== undefined && { tokensAt }),
    }
  }
}

function readClient(name: string, secrets: Secrets): ProviderOptions | null {
  if (!Object.hasOwn(PROVIDERS, name)) return null
  const prefix = name.toUpperCase().replaceAll('-', '_')
  const clientId = readSecret(secrets, `${prefix}_CLIENT_ID`)
  if (clientId === undefined) return null
  const clientSecret = readSecret(secrets, `${prefix}_CLIENT_SECRET`)
  return { clientId, ...(clientSecret !== undefined && { clientSecret }) }
}

function readSecret(secrets: Secrets, name: string): string | undefined {
  try {
    return secrets.get(name)
  } catch (error) {
    if (isSyncError(error) && error.code === 'SECRET_MISSING') return undefined
    throw error
  }
}

function textSettings(settings: Connection['settings']): Record<string, string> {
  return Object.fromEntries(
    Object.entries(settings).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}
