import { randomBytes } from 'node:crypto'
import { registerSecret } from '../redaction/known-secrets.ts'

/** A signing secret with its end; null for the newest, which signs until it is rotated. */
export interface SigningSecret {
  readonly secret: string
  readonly endsAt: number | null
}

const SECRET_BYTES = 32

/** The format of Standard Webhooks: `whsec_` and base64. */
export function generateSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`
}

export function serializeSecrets(secrets: readonly SigningSecret[]): string {
  return JSON.stringify(secrets.map(({ secret, endsAt }) => [secret, endsAt]))
}

/** Secrets that sign now, newest first; at most two. */
export function parseActiveSecrets(text: string, now: number): SigningSecret[] {
  const known = (JSON.parse(text) as Array<[string, number | null]>).map(([secret, endsAt]) => ({ secret, endsAt }))
  for (const { secret } of known) registerSecret(secret)
  return known.filter(({ endsAt }) => endsAt === null || endsAt > now)
}

/** The new secret signs from now on, together with the previous one until the overlap ends. Older ones end at once. */
export function rotateSecrets(text: string, secret: string, now: number, overlapMs: number): string {
  const [newest] = parseActiveSecrets(text, now)
  return serializeSecrets([
    { secret, endsAt: null },
    ...(newest === undefined || overlapMs === 0 ? [] : [{ secret: newest.secret, endsAt: now + overlapMs }]),
  ])
}
