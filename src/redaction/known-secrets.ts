/** What stands in the place of a secret. */
export const MASK = '[secret]'

/**
 * Five characters and less are not masked: such a value stands by chance in many a word, so masking it would ruin messages and
 * show, by what is missing, what it is. Nothing so short keeps anybody out.
 */
const SECRET_LENGTH_MIN = 6

/** Tokens are renewed for as long as a process lives; of those that are long gone the oldest are forgotten. */
const SECRETS_MAX = 1_000

/**
 * The values that this process was given or got as secrets, and whatever is written without them. Exact values and the forms
 * they take on their way, and no patterns: what is masked is a secret, and every secret known is masked.
 */
export class KnownSecrets {
  /** Every value with the forms it takes. */
  readonly #forms = new Map<string, readonly string[]>()
  /** All forms, the longest first, so that a secret inside another leaves nothing of it; null when one was added. */
  #orderedForms: readonly string[] | null = null

  register(value: string): void {
    const known = this.#forms.get(value)
    if (known !== undefined) {
      // Used again: the last to be forgotten.
      this.#forms.delete(value)
      this.#forms.set(value, known)
      return
    }
    const forms = extractSecretParts(value).filter((part) => part.length >= SECRET_LENGTH_MIN).flatMap(listEncodedForms)
    if (forms.length === 0) return
    this.#forms.set(value, forms)
    if (this.#forms.size > SECRETS_MAX) this.#forms.delete(this.#forms.keys().next().value!)
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

/** One for the process, also where a worker file is given a copy of this module of its own: by name, and not by module. */
const GLOBAL_KEY = Symbol.for('tidemark.known-secrets')
const globalScope = globalThis as { [GLOBAL_KEY]?: KnownSecrets }
const knownSecrets = (globalScope[GLOBAL_KEY] ??= new KnownSecrets())

/** Never shown from now on. */
export function registerSecret(value: string): void {
  knownSecrets.register(value)
}

/** Before it is shortened: half a secret is not recognised. */
export function maskSecrets(text: string): string {
  return knownSecrets.mask(text)
}

/** Of everything a program is given in its environment: what is a secret by its name or by its looks. */
export function registerEnvironmentSecrets(environment: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value] of Object.entries(environment)) {
    if (value !== undefined && (SECRET_NAME.test(name) || looksSecret(value)) && !NON_SECRET_NAME.test(name)) registerSecret(value)
  }
}

/** A value that was asked for as a secret. What its name calls a user or a place is none, and may well be a common word. */
export function registerNamedSecret(name: string, value: string): void {
  if (!NON_SECRET_NAME.test(name)) registerSecret(value)
}

const SECRET_NAME = /key|token|secret|pass(?!ive)|pwd|credential|auth|private|signature|dsn|cookie|session|bearer|pat$/i
const NON_SECRET_NAME = /^(?:old)?pwd$|(?:^|_)(?:user(?:name)?|login|hosts?|hostname|brokers?|servers?|port|address|region|bucket|database|db|schema|file|folder|dir|path|home|domain|locale|tz|env|environment|level|mode|sock|socket|type|name|(?:tenant|account|base|org|project|site|workspace)(?:_id)?)$/i

/** A URL that lets somebody in, or a long word of letters and digits. */
function looksSecret(value: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\/[^/]*:[^/]*@/i.test(value) || isToken(value)
}

function isToken(text: string): boolean {
  return /^[\w.~+/=-]{16,}$/.test(text) && /\d/.test(text) && /[a-z]/i.test(text) && !/^[./~]/.test(text)
}

/** Of an address only what lets in, for addresses are what messages are about; of a header also what comes after the scheme; of many lines each. */
function extractSecretParts(value: string): string[] {
  const text = value.trim()
  const address = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? extractUrlSecrets(text) : null
  if (address !== null) return address
  const [, word] = /^\w+ (\S+)$/.exec(text) ?? []
  return [text, ...(word === undefined ? [] : [word]), ...(text.includes('\n') ? text.split('\n').map((line) => line.trim()).filter(isToken) : [])]
}

function extractUrlSecrets(text: string): string[] {
  const password = /^[^/]*\/\/[^/?#]*?:([^/?#]*)@/.exec(text)?.[1]
  const queries = [...text.matchAll(/[?&]([^=&#]+)=([^&#]+)/g)].filter(([, name, value]) => SECRET_NAME.test(name!) || isToken(value!)).map((match) => match[2]!)
  const segments = text.replace(/[?#].*$/s, '').split('/').slice(3).filter(isToken)
  return [...(password === undefined ? [] : [password]), ...queries, ...segments].flatMap((part) => [part, decodeIfPossible(part)])
}

function decodeIfPossible(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** As it is, in an address, in a form, in JSON, and in base64, alone or with something before it. */
function listEncodedForms(value: string): string[] {
  const url = encodeURIComponent(value)
  const form = new URLSearchParams({ '': value }).toString().slice(1)
  const json = JSON.stringify(value).slice(1, -1)
  const encoded = [value, url, url.replaceAll(/%[0-9A-F]{2}/g, (hex) => hex.toLowerCase()), form, json, JSON.stringify(json).slice(1, -1), ...listBase64Forms(value)]
  return [...new Set(encoded)]
}

/** Three ways, for what stands before it moves its bits; without the characters at either end that its neighbours decide. */
function listBase64Forms(value: string): string[] {
  const bytes = Buffer.from(value)
  const texts = [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64').replace(/=+$/, '')
    const whole = (bytes.length + before) % 3 === 0 ? text.length : text.length - 1
    return text.slice(before === 0 ? 0 : before + 1, whole)
  })
  return texts.flatMap((text) => [text, text.replaceAll('+', '-').replaceAll('/', '_')]).filter((text) => text.length >= 8)
}
