import { BadQuery } from './query.ts'
import type { EdmValue } from './values.ts'

/** Everything a link must remember: whoever follows one adds nothing to it. */
export interface Query {
  readonly filter?: string | undefined
  readonly orderby?: string | undefined
  readonly select?: string | undefined
  readonly count?: boolean | undefined
}

export type SkipToken = Query & {
  /** After the row that has these values of the order and of the key, or after so many rows. */
  readonly after: Readonly<Record<string, EdmValue>> | number
  /** What `$top` leaves to be shown. */
  readonly left?: number | undefined
  /** The place in the journal at which a tracked listing began. */
  readonly tracked?: number | undefined
}

export type DeltaToken = Pick<Query, 'filter' | 'select'> & {
  /** The journal was shown up to here. */
  readonly serial: number
  readonly issue: number
}

export function writeToken(token: SkipToken | DeltaToken): string {
  return Buffer.from(JSON.stringify(token)).toString('base64url')
}

export function readToken<Token>(text: string): Token {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString()) as Token
  } catch (cause) {
    throw new BadQuery('The token was not issued by this service.', { cause })
  }
}
