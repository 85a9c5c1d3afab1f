import { SyncError } from '../contract/index.ts'
import { didYouMean } from '../values/did-you-mean.ts'
import { checkHost } from './check-host.ts'
import type { OAuthMethod, Provider, ProviderInput } from './define-provider.ts'
import { usesValue, type TemplateValues } from './fill-template.ts'
import type { ClientIdentity } from './oauth/token-requests.ts'
import { PROVIDERS } from './registry.ts'

/** The settings of one provider in a program. */
export interface ProviderOptions {
  /** A shipped provider by name, or one of your own. Default: the shipped provider of the same name. */
  readonly provider?: string | Provider
  /** The name on the connect page. */
  readonly title?: string
  /** The OAuth client that you registered at the vendor. */
  readonly clientId?: string
  readonly clientSecret?: string
  /** Replaces the default scopes. */
  readonly scopes?: readonly string[]
  /**
   * Replaces the origin of every URL of the vendor: for a generic provider, a self-hosted vendor, a sandbox or a
   * simulator. Requests to it may go to private addresses, because you chose it.
   */
  readonly baseUrl?: string
}

/** A provider with the settings of the program. */
export interface ResolvedProvider extends Provider {
  readonly client: ClientIdentity | null
  readonly baseUrl: string | null
}

/** How a connection is authorized. */
export type ConnectMethod = 'oauth' | 'form'

/** Returns a provider with its settings. Throws CONNECTION_INVALID if there is none, or if it lacks a setting. */
export function resolveProvider(name: string, options: Readonly<Record<string, ProviderOptions>>): ResolvedProvider {
  const given = Object.hasOwn(options, name) ? options[name] : undefined
  if (given === undefined)
    throw new SyncError(
      'CONNECTION_INVALID',
      `The connect flow has no provider ${JSON.stringify(name)}.${didYouMean(name, Object.keys(options))} Add it to \`connect.providers\`.`,
    )
  const provider = findProvider(name, given)
  const { title, clientId, clientSecret, scopes, baseUrl } = given
  const base = baseUrl === undefined ? null : checkBaseUrl(name, baseUrl)
  const place = (url: string): string => placeUrl(name, url, base)
  const { oauth, account } = provider
  return {
    ...provider,
    name,
    title: title ?? provider.title,
    client: clientId === undefined ? null : { id: clientId, secret: clientSecret ?? null },
    baseUrl: base,
    account: { ...account, url: place(account.url) },
    ...(oauth !== undefined && {
      oauth: {
        ...oauth,
        authorizeUrl: place(oauth.authorizeUrl),
        tokenUrl: place(oauth.tokenUrl),
        scopes: scopes ?? oauth.scopes,
        ...(oauth.revocation !== undefined && {
          revocation: { ...oauth.revocation, url: place(oauth.revocation.url) },
        }),
      },
    }),
  }
}

/** The method of a connection: OAuth if it is configured, else the form. */
export function chooseMethod(provider: ResolvedProvider, wanted?: ConnectMethod): ConnectMethod {
  const { name, oauth, form, client } = provider
  const hasOAuth = oauth !== undefined && (client !== null || oauth.isClientPerInstance === true)
  const method = wanted ?? (hasOAuth || form === undefined ? 'oauth' : 'form')
  if (method === 'oauth' ? hasOAuth : form !== undefined) return method
  throw new SyncError(
    'CONNECTION_INVALID',
    oauth !== undefined && !hasOAuth && method !== 'form'
      ? `The provider ${name} needs the OAuth client that you registered at the vendor: set \`clientId\` and \`clientSecret\`.`
      : `The provider ${name} cannot be connected with ${method === 'form' ? 'a form; set `clientId` for OAuth' : 'OAuth'}.`,
  )
}

/** The inputs of the connect page, by name. */
export function listInputs(provider: ResolvedProvider, method: ConnectMethod): Readonly<Record<string, ProviderInput>> {
  const { inputs = {}, form, oauth, client } = provider
  if (method === 'form') return { ...inputs, ...form?.fields }
  return oauth?.isClientPerInstance === true && client === null ? { ...inputs, ...CLIENT_INPUTS } : inputs
}

const CLIENT_INPUTS: Readonly<Record<string, ProviderInput>> = {
  client_id: { label: 'Client ID', hint: 'Of the OAuth application that you registered in your instance.' },
  client_secret: { label: 'Client secret', isSecret: true },
}

/** The values that a user entered, checked. */
export interface InputValues {
  /** Plain settings of the connection. */
  readonly settings: Readonly<Record<string, string>>
  /** Secrets, and everything else that belongs to the credentials. */
  readonly credentials: Readonly<Record<string, string>>
}

/** Messages by input. */
export type InputErrors = Readonly<Record<string, string>>

const INPUT_CHARS_MAX = 4_096

/** Checks what a user entered. Messages never quote a secret. */
export function checkInputs(
  provider: ResolvedProvider,
  method: ConnectMethod,
  entered: Readonly<Record<string, string>>,
): InputValues | { readonly errors: InputErrors } {
  const settings: Record<string, string> = {}
  const credentials: Record<string, string> = {}
  const errors: Record<string, string> = {}
  const { inputs = {} } = provider
  for (const [name, input] of Object.entries(listInputs(provider, method))) {
    const text = (Object.hasOwn(entered, name) ? entered[name] : undefined)?.trim() ?? ''
    const value = text === '' ? (input.default ?? '') : text
    if (value === '') errors[name] = `Enter ${lowerFirst(input.label)}.`
    else if (value.length > INPUT_CHARS_MAX) errors[name] = `${input.label} is too long.`
    else if (/[\u0000-\u001f\u007f]/.test(value)) errors[name] = `${input.label} contains a control character.`
    else if (input.hostSuffixes !== undefined) {
      const host = checkHost(value, input.hostSuffixes)
      if (host === null) errors[name] = describeHost(input)
      else settings[name] = host
    } else if (Object.hasOwn(inputs, name) && input.isSecret !== true) settings[name] = value
    else credentials[name] = value
  }
  return Object.keys(errors).length > 0 ? { errors } : { settings, credentials }
}

/** The values of the templates of a connection. */
export function templateValues(
  provider: ResolvedProvider,
  settings: Readonly<Record<string, string>>,
  text: Readonly<Record<string, string>> = {},
): TemplateValues {
  const { inputs = {}, oauth, client } = provider
  const urls = Object.keys(oauth?.settingsFromTokens ?? {})
  const isChecked = (name: string): boolean =>
    inputs[name]?.hostSuffixes !== undefined || (urls.includes(name) && URL.canParse(settings[name] ?? ''))
  const entries = Object.entries(settings)
  return {
    checked: Object.fromEntries(entries.filter(([name]) => isChecked(name))),
    text: {
      ...Object.fromEntries(entries.filter(([name]) => !isChecked(name))),
      ...(client !== null && { client_id: client.id }),
      ...text,
    },
  }
}

/** The origins that the authorization request may go to, as sources of a content security policy. */
export function authorizeOrigins({ oauth, inputs = {} }: ResolvedProvider): readonly string[] {
  if (oauth === undefined) return []
  const host = Object.entries(inputs).find(([name]) => usesValue(oauth.authorizeUrl, name))
  if (host === undefined) return [new URL(oauth.authorizeUrl.replaceAll(/\{\w+\}/g, 'x')).origin]
  const { hostSuffixes = [] } = host[1]
  if (hostSuffixes.length === 0) return ['https:']
  return hostSuffixes.map((suffix) => `https://${suffix.startsWith('.') ? `*${suffix}` : suffix}`)
}

/** The OAuth method of a provider that was resolved for it. */
export function requireOAuth({ name, oauth }: ResolvedProvider): OAuthMethod {
  if (oauth === undefined) throw new SyncError('CONNECTION_INVALID', `The provider ${name} has no OAuth.`)
  return oauth
}

function findProvider(name: string, { provider = name }: ProviderOptions): Provider {
  if (typeof provider !== 'string') return provider
  const shipped: Readonly<Record<string, Provider>> = PROVIDERS
  if (Object.hasOwn(shipped, provider)) return shipped[provider] as Provider
  throw new SyncError(
    'CONNECTION_INVALID',
    `There is no shipped provider ${JSON.stringify(provider)}.${didYouMean(provider, Object.keys(shipped))} Pass \`provider: defineProvider({ … })\` for one of your own.`,
  )
}

function checkBaseUrl(name: string, baseUrl: string): string {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : null
  if (url === null || !['http:', 'https:'].includes(url.protocol) || url.username !== '' || url.search !== '')
    throw new SyncError('CONNECTION_INVALID', `\`baseUrl\` of the provider ${name} is not an http or https URL.`)
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}

/** A URL that begins with a setting of the connection is not replaced: the vendor stated it. */
function placeUrl(name: string, template: string, base: string | null): string {
  if (template.startsWith('{base_url}')) {
    if (base === null) throw new SyncError('CONNECTION_INVALID', `The provider ${name} needs \`baseUrl\`.`)
    return base + template.slice('{base_url}'.length)
  }
  return base === null ? template : template.replace(/^https:\/\/[^/]+/, base)
}

function describeHost({ example, hostSuffixes = [] }: ProviderInput): string {
  return hostSuffixes.length === 0
    ? `Enter the host name of a public address, such as ${example ?? 'acme.example.com'}.`
    : `Enter a host name such as ${example ?? hostSuffixes.join(' or ')}. It must end in ${hostSuffixes.join(' or ')}.`
}

function lowerFirst(label: string): string {
  return /^[A-Z][a-z]/.test(label) ? `the ${label[0]?.toLowerCase() ?? ''}${label.slice(1)}` : `the ${label}`
}
