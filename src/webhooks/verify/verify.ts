import { timingSafeEqual } from 'node:crypto'
import type { Secrets } from '../../contract/index.ts'

/** A message as it came over the wire. */
export interface InboundDelivery {
  readonly method: string
  /** Path and query. */
  readonly path: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** The very bytes: a body that was parsed and written again is another. */
  readonly rawBody: Uint8Array
}

export interface VerifyContext {
  /** Milliseconds. */
  readonly now: number
  readonly secrets: Secrets
}

export interface VerifiedMessage {
  /** Names the message for ever, and is part of what was signed: who plays it again cannot change it. */
  readonly id: string
}

/** Throws WebhookRefused for a message that is not what it claims to be. */
export type WebhookVerifier = (delivery: InboundDelivery, context: VerifyContext) => VerifiedMessage | Promise<VerifiedMessage>

/** The message is refused for good; the sender is told so, without a reason that would help to forge a better one. */
export class WebhookRefused extends Error {
  override readonly name = 'WebhookRefused'
}

export interface SignatureOptions {
  /** The name of the secret, or of several while it is being rotated. */
  readonly secret: string | readonly string[]
}

export function findSecrets({ secret }: SignatureOptions, { secrets }: VerifyContext): string[] {
  return [secret].flat().map((name) => secrets.get(name))
}

/** In the same time wherever they differ. */
export function timingSafeTextEqual(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}

export const TOLERANCE_MS = 300_000

/** Neither too old nor from the future: a captured message can be played again only within it, and there its id is known. */
export function checkTimestamp(ms: number, now: number): void {
  if (!Number.isFinite(ms) || Math.abs(now - ms) > TOLERANCE_MS) throw new WebhookRefused('The message was signed more than 300 s ago, or ahead.')
}

export function requireHeader({ headers }: InboundDelivery, name: string): string {
  const value = headers[name]
  if (value === undefined || value === '') throw new WebhookRefused(`The header ${name} is missing.`)
  return value
}

export function parseDigits(text: string | undefined): number {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : NaN
}

export const SIGNATURE_MISMATCH = 'The signature is not ours.'
