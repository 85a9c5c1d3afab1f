/** The replacement for a masked secret. */
export const MASK = '[secret]'

/**
 * Values of five characters or less are not masked: they occur by chance in ordinary words, so masking would ruin
 * messages and reveal the value by its absence. A secret that short protects nothing.
 */
const SECRET_LENGTH_MIN = 6

/** Tokens are renewed for the lifetime of a process; beyond this number the least recently used are dropped. */
const SECRETS_MAX = 1_000

/**
 * The secrets known to this process, and the masking of text. It matches exact values and their encoded forms, not
 * patterns: everything masked is a secret, and every known secret is masked.
 */
export class KnownSecrets {
  /** Every value with its encoded forms. */
  readonly #forms = new Map<string, readonly string[]>()
  /**
   * All forms, longest first, so that masking a secret inside another leaves no part of it; null after an addition.
   */
  #orderedForms: readonly string[] | null = null

  register(value: string): void {
    const known = this.#forms.get(value)
    if (known !== undefined) {
      // Moves the value to the end, so that the least recently used is dropped first.
      this.#forms.delete(value)
      this.#forms.set(value, known)
      return
    }
    const forms = extractSecretParts(value)
      // A part of the mask itself would be masked within it.
      .filter((part) => part.length >= SECRET_LENGTH_MIN && !MASK.includes(part))
      .flatMap(listEncodedForms)
    if (forms.length === 0) return
    this.#forms.set(value, forms)
    const [oldest] = this.#forms.keys()
    if (this.#forms.size > SECRETS_MAX && oldest !== undefined) this.#forms.delete(oldest)
    this.#orderedForms = null
  }

  mask(text: string): string {
    if (this.#forms.size === 0) return text
    this.#orderedForms ??= [...new Set([...this.#forms.values()].flat())].toSorted((a, b) => b.length - a.length)
    let masked = text
    for (const form of this.#orderedForms) if (masked.includes(form)) masked = masked.replaceAll(form, MASK)
    return masked
  }
}

/** One instance per process, keyed by a global symbol: a worker file may load its own copy of this module. */
const GLOBAL_KEY = Symbol.for('tidemark.known-secrets')
const globalScope = globalThis as { [GLOBAL_KEY]?: KnownSecrets }
const knownSecrets = (globalScope[GLOBAL_KEY] ??= new KnownSecrets())

/** Masks the value from now on. */
export function registerSecret(value: string): void {
  knownSecrets.register(value)
}

/** Call before truncating: a partial secret is not recognized. */
export function maskSecrets(text: string): string {
  return knownSecrets.mask(text)
}

/** Registers environment variables that are secrets by name or by form. */
export function registerEnvironmentSecrets(environment: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value] of Object.entries(environment)) {
    if (value !== undefined && (SECRET_NAME.test(name) || looksSecret(value)) && !NON_SECRET_NAME.test(name))
      registerSecret(value)
  }
}

/**
 * Registers a value that was requested as a secret. A user name or a location is not one, and may be a common word.
 */
export function registerNamedSecret(name: string, value: string): void {
  if (!NON_SECRET_NAME.test(name)) registerSecret(value)
}

const SECRET_NAME = /key|token|secret|pass(?!ive)|pwd|credential|auth|private|signature|dsn|cookie|session|bearer|pat$/i
const NON_SECRET_NAME =
  /^(?:old)?pwd$|(?:^|_)(?:user(?:name)?|login|hosts?|hostname|brokers?|servers?|port|address|region|bucket|database|db|schema|file|folder|dir|path|home|domain|locale|tz|env|environment|level|mode|sock|socket|type|name|(?:tenant|account|base|org|project|site|workspace)(?:_id)?)$/i

/** A URL with credentials, or a long word of letters and digits. */
function looksSecret(value: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\/[^/]*:[^/]*@/i.test(value) || isToken(value)
}

function isToken(text: string): boolean {
  return /^[\w.~+/=-]{16,}$/.test(text) && /\d/.test(text) && /[a-z]/i.test(text) && !/^[./~]/.test(text)
}

/**
 * For a URL only its credentials, because messages are about URLs; for a header also the part after the scheme; for
 * multi-line text each line.
 */
function extractSecretParts(value: string): string[] {
  const text = value.trim()
  const address = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? extractUrlSecrets(text) : null
  if (address !== null) return address
  const [, word] = /^\w+ (\S+)$/.exec(text) ?? []
  return [
    text,
    ...(word === undefined ? [] : [word]),
    ...(text.includes('\n')
      ? text
          .split('\n')
          .map((line) => line.trim())
          .filter(isToken)
      : []),
  ]
}

function extractUrlSecrets(text: string): string[] {
  const password = /^[^/]*\/\/[^/?#]*?:([^/?#]*)@/.exec(text)?.[1]
  const queries = [...text.matchAll(/[?&]([^=&#]+)=([^&#]+)/g)].flatMap(([, name = '', value = '']) =>
    SECRET_NAME.test(name) || isToken(value) ? [value] : [],
  )
  const segments = text
    .replace(/[?#].*$/s, '')
    .split('/')
    .slice(3)
    .filter(isToken)
  return [...(password === undefined ? [] : [password]), ...queries, ...segments].flatMap((part) => [
    part,
    decodeIfPossible(part),
  ])
}

function decodeIfPossible(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The plain value, URL-encoded, form-encoded, in JSON, and in base64, alone or with a prefix. */
function listEncodedForms(value: string): string[] {
  const url = encodeURIComponent(value)
  const form = new URLSearchParams({ '': value }).toString().slice(1)
  const json = JSON.stringify(value).slice(1, -1)
  const encoded = [
    value,
    url,
    url.replaceAll(/%[0-9A-F]{2}/g, (hex) => hex.toLowerCase()),
    form,
    json,
    JSON.stringify(json).slice(1, -1),
    ...listBase64Forms(value),
  ]
  return [...new Set(encoded)]
}

/**
 * Three alignments, because a prefix shifts the bits; without the characters at either end that depend on the
 * neighbours.
 */
function listBase64Forms(value: string): string[] {
  const bytes = Buffer.from(value)
  const texts = [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .replace(/=+$/, '')
    const whole = (bytes.length + before) % 3 === 0 ? text.length : text.length - 1
    return text.slice(before === 0 ? 0 : before + 1, whole)
  })
  return texts
    .flatMap((text) => [text, text.replaceAll('+', '-').replaceAll('/', '_')])
    .filter((text) => text.length >= 8)
}
