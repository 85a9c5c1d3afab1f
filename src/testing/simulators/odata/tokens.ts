import { BadQueryError } from './query.ts'
import type { EdmValue } from './values.ts'

/** Everything a link must remember: whoever follows one adds nothing to it. */
export interface LinkQuery {
  readonly filter?: string | undefined
  readonly orderby?: string | undefined
  readonly select?: string | undefined
  readonly count?: boolean | undefined
}

export type SkipToken = LinkQuery & {
  /** After the row that has these values of the order and of the key, or after so many rows. */
  readonly after: Readonly<Record<string, EdmValue>> | number
  /** What `$top` leaves to be shown. */
  readonly remaining?: number | undefined
  /** The place in the journal at which a tracked listing began. */
  readonly trackedSince?: number | undefined
}

export type DeltaToken = Pick<LinkQuery, 'filter' | 'select'> & {
  /** The journal was shown up to here. */
  readonly serial: number
  readonly linkNumber: number
}

export function encodeToken(token: SkipToken | DeltaToken): string {
  return Buffer.from(JSON.stringify(token)).toString('base64url')
}

export function decodeToken<Token>(text: string): Token {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString()) as Token
  } catch (cause) {
    throw new BadQueryError('The token was not issued by this service.', { cause })
  }
}
