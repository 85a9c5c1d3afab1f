import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto'

/** 256 bits of randomness, as text for a URL or a cookie. */
export function createToken(): string {
  return randomBytes(32).toString('base64url')
}

/** The stored form of a token. A token has too much randomness for a slow hash to matter. */
export function digestToken(token: string): string {
  return hash('sha256', token, 'hex')
}

/** Takes the same time whichever character differs. */
export function isDigestOf(token: string, digest: string): boolean {
  return timingSafeEqual(Buffer.from(digestToken(token), 'hex'), Buffer.from(digest, 'hex'))
}

/** The token of the form: only the browser with the cookie can have received it. */
export function createFormToken(browserSecret: string, id: string): string {
  return createHmac('sha256', browserSecret).update(`form ${id}`).digest('base64url')
}

export function isFormToken(token: string, browserSecret: string, id: string): boolean {
  const [given, expected] = [Buffer.from(token), Buffer.from(createFormToken(browserSecret, id))]
  return given.length === expected.length && timingSafeEqual(given, expected)
}

/** `state` carries the id of its session, so that a callback finds it, and a secret. */
export function joinState(id: string, secret: string): string {
  return `${id}.${secret}`
}

export function parseState(state: string): { readonly id: string; readonly secret: string } | null {
  const [, id, secret] = /^([0-9a-f]{64})\.([A-Za-z0-9_-]{43})$/.exec(state) ?? []
  return id === undefined || secret === undefined ? null : { id, secret }
}

/** A token of a link, or null for any other text. */
export function parseToken(text: string): string | null {
  return /^[A-Za-z0-9_-]{43}$/.test(text) ? text : null
}
