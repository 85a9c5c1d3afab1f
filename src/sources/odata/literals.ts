import { SyncError } from '../../contract/index.ts'
import { requireInstant } from '../../strategies/kit/instants.ts'
import { canonicalizeInstant } from '../../values/instant.ts'

export type ODataVersion = 2 | 4

interface LiteralFormat {
  /** Validates the text: it comes from a state that may have been edited by hand, and goes into a query. */
  matches(text: string): boolean
  /** Formats the literal for a query of the given version. */
  readonly 4: (text: string) => string
  readonly 2: (text: string) => string
}

const formatBare = (text: string): string => text
const formatQuoted = (text: string): string => `'${text.replaceAll("'", "''")}'`
const matchPattern =
  (form: RegExp) =>
  (text: string): boolean =>
    form.test(text)
const INTEGER_FORMAT = { matches: matchPattern(/^-?\d{1,10}$/), 4: formatBare, 2: formatBare }
const isInstant = (text: string): boolean => canonicalizeInstant(text) !== null
/** UTC, without trailing zeros of the fraction. */
const formatUtc = (text: string): string => requireInstant(text, 'A cursor').replace(/(?:\.?0+)?Z$/, '')

/** The types that a service can compare and sort by. */
const LITERAL_FORMATS: Readonly<Record<string, LiteralFormat>> = {
  'Edm.String': { matches: () => true, 4: formatQuoted, 2: formatQuoted },
  'Edm.Guid': {
    matches: matchPattern(/^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i),
    4: formatBare,
    2: (text) => `guid'${text}'`,
  },
  'Edm.Byte': INTEGER_FORMAT,
  'Edm.SByte': INTEGER_FORMAT,
  'Edm.Int16': INTEGER_FORMAT,
  'Edm.Int32': INTEGER_FORMAT,
  'Edm.Int64': { matches: matchPattern(/^-?\d{1,19}$/), 4: formatBare, 2: (text) => `${text}L` },
  'Edm.Decimal': { matches: matchPattern(/^-?\d{1,100}(?:\.\d{1,100})?$/), 4: formatBare, 2: (text) => `${text}M` },
  'Edm.Date': { matches: matchPattern(/^\d{4}-\d\d-\d\d$/), 4: formatBare, 2: formatBare },
  'Edm.DateTime': { matches: isInstant, 4: formatBare, 2: (text) => `datetime'${formatUtc(text)}'` },
  // Version 4 keeps the value as written: dropping digits would change the instant.
  'Edm.DateTimeOffset': { matches: isInstant, 4: formatBare, 2: (text) => `datetimeoffset'${formatUtc(text)}Z'` },
}

export function isComparableType(type: string): boolean {
  return Object.hasOwn(LITERAL_FORMATS, type)
}

/** Formats a value for a query, before URL encoding. */
export function formatLiteral(type: string, text: string, version: ODataVersion): string {
  const format = LITERAL_FORMATS[type]
  if (format === undefined) throw new SyncError('SYNC_INVALID', `Values of type ${type} cannot be compared in a query.`)
  if (!format.matches(text))
    throw new SyncError('CURSOR_REJECTED', `The stored state has a value that is not a valid ${type}.`)
  return format[version](text)
}
