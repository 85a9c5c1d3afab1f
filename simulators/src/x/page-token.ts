import { required } from '../kit/required.ts'

/** A boundary between two bookmarks, and which side of it to read. */
export interface PageToken {
  readonly direction: 'older' | 'newer'
  readonly listIndex: number
  readonly issuedAtMs: number
}

const PREFIX = '7140d'
const DIGITS = 10

/** Base32hex, as the API describes its tokens; the content is opaque to clients. */
export function encodeToken({ direction, listIndex: place, issuedAtMs }: PageToken): string {
  return `${PREFIX}${direction === 'older' ? 'o' : 'n'}${encodeDigits(place)}${encodeDigits(issuedAtMs)}`
}

export function decodeToken(text: string): PageToken | undefined {
  const match = new RegExp(`^${PREFIX}([on])([0-9a-v]{${DIGITS}})([0-9a-v]{${DIGITS}})$`).exec(text)
  if (match === null) return undefined
  return {
    direction: match[1] === 'o' ? 'older' : 'newer',
    listIndex: Number.parseInt(required(match[2], 'match[2]'), 32),
    issuedAtMs: Number.parseInt(required(match[3], 'match[3]'), 32),
  }
}

function encodeDigits(value: number): string {
  return value.toString(32).padStart(DIGITS, '0')
}
