import { BadQueryError } from './query.ts'
import type { EdmValue } from './values.ts'

/** The whole state of a link: a client adds nothing to it. */
export interface LinkQuery {
  readonly filter?: string | undefined
  readonly orderby?: string | undefined
  readonly select?: string | undefined
  readonly count?: boolean | undefined
}

export type SkipToken = LinkQuery & {
  /** After the row with these order and key values, or after this many rows. */
  readonly after: Readonly<Record<string, EdmValue>> | number
  /** The remaining rows of `$top`. */
  readonly remaining?: number | undefined
  /** The journal index at which a tracked listing began. */
  readonly trackedSince?: number | undefined
}

export type DeltaToken = Pick<LinkQuery, 'filter' | 'select'> & {
  /** The journal was delivered up to here. */
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
