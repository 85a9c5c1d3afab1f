import { SyncError } from '../../contract/index.ts'
import { canonicalInstant } from '../../values/instant.ts'

export type Version = 2 | 4

interface Kind {
  /** What a value of it looks like as text: it comes from a state that may have been set by hand, and goes into a query. */
  fits(text: string): boolean
  /** As it stands in a query of either version. */
  readonly 4: (text: string) => string
  readonly 2: (text: string) => string
}

const bare = (text: string): string => text
const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`
const like = (form: RegExp) => (text: string): boolean => form.test(text)
const number = { fits: like(/^-?\d{1,10}$/), 4: bare, 2: bare }
const isInstant = (text: string): boolean => canonicalInstant(text) !== null
/** UTC, without the zeros behind the last digit that says something. */
const utc = (text: string): string => canonicalInstant(text)!.replace(/(?:\.?0+)?Z$/, '')

/** The types that a service can compare and sort by, and so can be read on from. */
const KINDS: Readonly<Record<string, Kind>> = {
  'Edm.String': { fits: () => true, 4: quoted, 2: quoted },
  'Edm.Guid': { fits: like(/^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i), 4: bare, 2: (text) => `guid'${text}'` },
  'Edm.Byte': number,
  'Edm.SByte': number,
  'Edm.Int16': number,
  'Edm.Int32': number,
  'Edm.Int64': { fits: like(/^-?\d{1,19}$/), 4: bare, 2: (text) => `${text}L` },
  'Edm.Decimal': { fits: like(/^-?\d{1,100}(?:\.\d{1,100})?$/), 4: bare, 2: (text) => `${text}M` },
  'Edm.Date': { fits: like(/^\d{4}-\d\d-\d\d$/), 4: bare, 2: bare },
  'Edm.DateTime': { fits: isInstant, 4: bare, 2: (text) => `datetime'${utc(text)}'` },
  // As it was written in version 4: digits that were cut off would make another moment of it.
  'Edm.DateTimeOffset': { fits: isInstant, 4: bare, 2: (text) => `datetimeoffset'${utc(text)}Z'` },
}

export function isComparable(type: string): boolean {
  return Object.hasOwn(KINDS, type)
}

/** A value as it stands in a query, not yet encoded for a URL. */
export function literal(type: string, text: string, version: Version): string {
  const kind = KINDS[type]!
  if (!kind.fits(text)) throw new SyncError('CURSOR_REJECTED', `The stored position holds a value that is no ${type}.`)
  return kind[version](text)
}
