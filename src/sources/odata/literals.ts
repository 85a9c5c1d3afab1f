import { SyncError } from '../../contract/index.ts'
import { canonicalizeInstant } from '../../values/instant.ts'

export type ODataVersion = 2 | 4

interface LiteralFormat {
  /** What a value of it looks like as text: it comes from a state that may have been set by hand, and goes into a query. */
  matches(text: string): boolean
  /** As it stands in a query of either version. */
  readonly 4: (text: string) => string
  readonly 2: (text: string) => string
}

const formatBare = (text: string): string => text
const formatQuoted = (text: string): string => `'${text.replaceAll("'", "''")}'`
const matchPattern = (form: RegExp) => (text: string): boolean => form.test(text)
const INTEGER_FORMAT = { matches: matchPattern(/^-?\d{1,10}$/), 4: formatBare, 2: formatBare }
const isInstant = (text: string): boolean => canonicalizeInstant(text) !== null
/** UTC, without the zeros behind the last digit that says something. */
const formatUtc = (text: string): string => canonicalizeInstant(text)!.replace(/(?:\.?0+)?Z$/, '')

/** The types that a service can compare and sort by, and so can be read on from. */
const LITERAL_FORMATS: Readonly<Record<string, LiteralFormat>> = {
  'Edm.String': { matches: () => true, 4: formatQuoted, 2: formatQuoted },
  'Edm.Guid': { matches: matchPattern(/^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i), 4: formatBare, 2: (text) => `guid'${text}'` },
  'Edm.Byte': INTEGER_FORMAT,
  'Edm.SByte': INTEGER_FORMAT,
  'Edm.Int16': INTEGER_FORMAT,
  'Edm.Int32': INTEGER_FORMAT,
  'Edm.Int64': { matches: matchPattern(/^-?\d{1,19}$/), 4: formatBare, 2: (text) => `${text}L` },
  'Edm.Decimal': { matches: matchPattern(/^-?\d{1,100}(?:\.\d{1,100})?$/), 4: formatBare, 2: (text) => `${text}M` },
  'Edm.Date': { matches: matchPattern(/^\d{4}-\d\d-\d\d$/), 4: formatBare, 2: formatBare },
  'Edm.DateTime': { matches: isInstant, 4: formatBare, 2: (text) => `datetime'${formatUtc(text)}'` },
  // As it was written in version 4: digits that were cut off would make another moment of it.
  'Edm.DateTimeOffset': { matches: isInstant, 4: formatBare, 2: (text) => `datetimeoffset'${formatUtc(text)}Z'` },
}

export function isComparableType(type: string): boolean {
  return Object.hasOwn(LITERAL_FORMATS, type)
}

/** A value as it stands in a query, not yet encoded for a URL. */
export function formatLiteral(type: string, text: string, version: ODataVersion): string {
  const kind = LITERAL_FORMATS[type]!
  if (!kind.matches(text)) throw new SyncError('CURSOR_REJECTED', `The stored position holds a value that is no ${type}.`)
  return kind[version](text)
}
