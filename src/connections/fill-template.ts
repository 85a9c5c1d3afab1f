import { SyncError } from '../contract/index.ts'

/** The values of a template. */
export interface TemplateValues {
  /** Host names and URLs that were checked; they are inserted as they are. */
  readonly checked: Readonly<Record<string, string>>
  /** Credentials and other text; in a URL they are encoded as one component. */
  readonly text: Readonly<Record<string, string>>
}

/** The URL of a provider with its values. Throws if the result is not an http or https URL, or if a value is missing. */
export function fillUrl(template: string, values: TemplateValues): URL {
  const text = fill(template, (name) => values.checked[name] ?? encode(values.text[name]))
  if (!URL.canParse(text))
    throw new SyncError('CONNECTION_INVALID', `${template} is not a URL with the given settings.`)
  return new URL(text)
}

/** A field of a request with its values. */
export function fillText(template: string, values: TemplateValues): string {
  return fill(template, (name) => values.checked[name] ?? values.text[name])
}

/** Whether a template needs a value. */
export function usesValue(template: string, name: string): boolean {
  return template.includes(`{${name}}`)
}

function fill(template: string, valueOf: (name: string) => string | undefined): string {
  return template.replaceAll(PLACEHOLDER, (_match, name: string) => {
    const value = valueOf(name)
    if (value === undefined) throw new SyncError('CONNECTION_INVALID', `The setting ${name} is missing.`)
    return value
  })
}

/** A GraphQL body has braces too, but never a bare name between them. */
const PLACEHOLDER = /\{([a-z_]+)\}/g

function encode(value: string | undefined): string | undefined {
  return value === undefined ? undefined : encodeURIComponent(value)
}
