import { timingSafeEqual } from 'node:crypto'
import type { Secrets } from '../../contract/index.ts'

/** An HTTP request of a vendor, before its signature is verified. */
export interface InboundDelivery {
  readonly method: string
  /** Path and query. */
  readonly path: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** The exact bytes: a reserialized body has another signature. */
  readonly rawBody: Uint8Array
}

/** The time and secrets for verifying a signature. */
export interface VerifyContext {
  /** Milliseconds. */
  readonly now: number
  readonly secrets: Secrets
}

/** A message whose signature is valid. */
export interface VerifiedMessage {
  /** Unique, and part of the signed content, so that a replay cannot change it. */
  readonly id: string
}

/** Throws WebhookRefused for a message with an invalid signature. */
export type WebhookVerifier = (
  delivery: InboundDelivery,
  context: VerifyContext,
) => VerifiedMessage | Promise<VerifiedMessage>

/** Refuses a message permanently. The response omits the reason, which would help an attacker. */
export class WebhookRefused extends Error {
  override readonly name = 'WebhookRefused'
}

/** The secret of a signature. */
export interface SignatureOptions {
  /** The name of the secret, or several names during a rotation. */
  readonly secret: string | readonly string[]
}

export function findSecrets({ secret }: SignatureOptions, { secrets }: VerifyContext): string[] {
  return [secret].flat().map((name) => secrets.get(name))
}

/** Takes the same time wherever the texts differ. */
export function timingSafeTextEqual(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}

export const TOLERANCE_MS = 300_000

/**
 * Rejects old and future messages: a captured message can be replayed only within the tolerance, where its id is still
 * known.
 */
export function checkTimestamp(ms: number, now: number): void {
  if (!Number.isFinite(ms) || Math.abs(now - ms) > TOLERANCE_MS)
    throw new WebhookRefused('The timestamp of the message is more than 300 s off.')
}

export function requireHeader({ headers }: InboundDelivery, name: string): string {
  const value = headers[name]
  if (value === undefined || value === '') throw new WebhookRefused(`The header ${name} is missing.`)
  return value
}

export function parseDigits(text: string | undefined): number {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : NaN
}

export const SIGNATURE_MISMATCH = 'The signature is invalid.'
