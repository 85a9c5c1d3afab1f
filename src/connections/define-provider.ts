import type { ClientAuth } from '../sources/kit/token-endpoint.ts'

/**
 * Declares a vendor that an account can be connected at: the default export of `src/connections/providers/<name>.ts`.
 * It is data. The connect flow, the connect page and the reference page are derived from it.
 *
 * A URL and a text may contain `{name}`: an input, a member of the credentials, or `client_id`.
 */
export function defineProvider<const Name extends string>(
  provider: Provider & { readonly name: Name },
): Provider & {
  readonly name: Name
} {
  return provider
}

/** A vendor that an account can be connected at. */
export interface Provider {
  readonly name: string
  /** The name of the vendor on the connect page. */
  readonly title: string
  /** The vendor's documentation of its authorization. */
  readonly documentation: string
  /** The source of `tidemark/sources/*` that reads the account; null if any source may. */
  readonly source: string | null
  /** Asked before the account is connected, and kept as settings of the connection. */
  readonly inputs?: Readonly<Record<string, ProviderInput>>
  /** Absent if the vendor has no OAuth. */
  readonly oauth?: OAuthMethod
  /** Absent if OAuth is the only way. */
  readonly form?: FormMethod
  /** How the vendor states whose account the credentials belong to. It is also the test of a connection. */
  readonly account: AccountRequest
}

/** A value that the user enters. */
export interface ProviderInput {
  readonly label: string
  /** Where the user finds it. */
  readonly hint?: string
  readonly example?: string
  /** Whether the value is hidden on the page and kept with the credentials. */
  readonly isSecret?: boolean
  /** A host name. Other hosts than those that end in one of the suffixes are refused; with `[]`, every public host. */
  readonly hostSuffixes?: readonly string[]
  /** The value if the user enters none. */
  readonly default?: string
}

/** Authorization code with PKCE. */
export interface OAuthMethod {
  readonly authorizeUrl: string
  readonly tokenUrl: string
  /** The issuer of RFC 9207; a callback with another `iss` is refused. */
  readonly issuer?: string
  readonly scopes: readonly string[]
  /** Default: a space. */
  readonly scopeSeparator?: ' ' | ','
  /** Whether the vendor checks a code challenge (S256). None is sent if it does not support them. */
  readonly pkce: 'required' | 'supported' | 'unsupported'
  readonly clientAuth: ClientAuth
  /** The format of a token request. Default: `form`. */
  readonly tokenFormat?: 'form' | 'json'
  /** The path of the object with the tokens in the answer. Default: the answer itself. */
  readonly tokensAt?: string
  /** Further fields of the authorization request. */
  readonly authorizeFields?: Readonly<Record<string, string>>
  /** Whether a refresh returns a new refresh token; `optional` depends on the settings of the vendor's app. */
  readonly refreshTokens: 'rotating' | 'optional' | 'fixed' | 'none'
  /** Whether the answer states when the access token expires. `never`: it does not expire. */
  readonly expiry: 'stated' | 'unstated' | 'never'
  /** Members of the token answer that are kept as settings of the connection, by the name of the setting. */
  readonly settingsFromTokens?: Readonly<Record<string, string>>
  /** Absent if the vendor has no endpoint to revoke a grant. */
  readonly revocation?: RevocationRequest
  /** Whether the client is registered by the user in the own instance, and so entered on the page. */
  readonly isClientPerInstance?: boolean
}

/** The request that ends a grant. */
export interface RevocationRequest {
  readonly method: 'POST' | 'DELETE'
  /** May contain `{access_token}` or `{refresh_token}`. */
  readonly url: string
  readonly fields?: Readonly<Record<string, string>>
  /** Default: the client, as at the token endpoint. */
  readonly auth?: 'client' | 'bearer' | 'none'
  /** Default: `form`. */
  readonly format?: 'form' | 'json'
}

/** Credentials that the user creates at the vendor and enters on the connect page. */
export interface FormMethod {
  /** The steps at the vendor, in plain words. */
  readonly steps: readonly string[]
  readonly fields: Readonly<Record<string, ProviderInput>>
  /** How a request is authenticated with them. */
  readonly auth: FormAuth
}

/** How the fields of a form authenticate a request. */
export type FormAuth =
  | { readonly kind: 'header'; readonly header: string; readonly field: string; readonly prefix?: string }
  | { readonly kind: 'basic'; readonly user: string; readonly password: string }
  | { readonly kind: 'kraken'; readonly key: string; readonly secret: string }

/** A request to the vendor's API, and the places of the account in its answer. */
export interface AccountRequest {
  readonly method?: 'GET' | 'POST'
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** A JSON body, or a form for a signed request. */
  readonly body?: string
  /** The path of the identity: `data.0.id`. Never changes for an account. */
  readonly id: string
  /** The path of a name to show. */
  readonly label: string
}
