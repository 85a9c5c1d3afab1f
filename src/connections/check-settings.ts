import { SyncError, type JsonObject } from '../contract/index.ts'
import { SOURCES } from '../sources/registry.ts'
import { didYouMean } from '../values/did-you-mean.ts'
import type { Provider } from './define-provider.ts'
import { PROVIDERS } from './registry.ts'

/** Settings of a source's config that a connection may have instead. */
const SOURCE_SETTINGS = ['base_url', 'instance_url']
const CHARS_MAX = 4_096

/**
 * Checks settings against the provider and the config schema of its source. Throws CONNECTION_INVALID for an unknown
 * setting, so that a misspelled one is not ignored.
 */
export function checkSettings(provider: string, settings: JsonObject): void {
  const fail = (what: string): never => {
    throw new SyncError('CONNECTION_INVALID', `A connection at ${provider}: ${what}`)
  }
  const known = listSettings(provider)
  for (const [name, value] of Object.entries(settings)) {
    if (!known.includes(name)) fail(`there is no setting ${JSON.stringify(name)}.${didYouMean(name, known)}`)
    if (typeof value !== 'string' || value === '' || value.length > CHARS_MAX) fail(`\`${name}\` must be a text.`)
    else if (name.endsWith('_url') && !isWebUrl(value))
      fail(`\`${name}\` must be an http or https URL without a password.`)
  }
}

/** The settings that a connection at a provider can have. */
export function listSettings(name: string): readonly string[] {
  const provider = (PROVIDERS as Readonly<Record<string, Provider>>)[name]
  if (provider === undefined) return SOURCE_SETTINGS
  const { inputs = {}, oauth, source } = provider
  const config = source === null ? null : SOURCES[source as keyof typeof SOURCES]?.config
  const fromSource = SOURCE_SETTINGS.filter((setting) => config == null || Object.hasOwn(config.properties, setting))
  const fromInputs = Object.keys(inputs).filter((input) => inputs[input]?.isSecret !== true)
  return [...new Set([...fromSource, ...fromInputs, ...Object.keys(oauth?.settingsFromTokens ?? {})])]
}

function isWebUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null
  return url !== null && ['http:', 'https:'].includes(url.protocol) && url.username === '' && url.password === ''
}
