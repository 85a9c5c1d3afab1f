import type { JsonValue } from '../../contract/index.ts'
import type { JsonSchema } from '../schema.ts'

/** How a property of one kind becomes a column: the conversion, and the schema of the result. */
export interface PropertyKind {
  readonly schema: JsonSchema
  /** Returns a value of another kind unchanged, so that the schema rejects it. */
  readonly toPlain: (value: unknown) => unknown
}

const TEXT_SCHEMA = { type: ['string', 'null'] }
const TEXT_LIST_SCHEMA = { type: ['array', 'null'], items: { type: 'string' } }

const PROPERTY_KINDS: Readonly<Record<string, PropertyKind>> = {
  title: { schema: TEXT_SCHEMA, toPlain: (value) => readTokens(value, textOf) },
  text: { schema: TEXT_SCHEMA, toPlain: (value) => readTokens(value, textOf) },
  url: {
    schema: TEXT_SCHEMA,
    toPlain: (value) => readTokens(value, (tokens) => emptyToNull(linkOf(tokens[0]) ?? textOf(tokens))),
  },
  email: { schema: TEXT_SCHEMA, toPlain: (value) => readTokens(value, (tokens) => emptyToNull(plainText(tokens))) },
  phone_number: {
    schema: TEXT_SCHEMA,
    toPlain: (value) => readTokens(value, (tokens) => emptyToNull(plainText(tokens))),
  },
  select: { schema: TEXT_SCHEMA, toPlain: (value) => readTokens(value, (tokens) => emptyToNull(plainText(tokens))) },
  status: { schema: TEXT_SCHEMA, toPlain: (value) => readTokens(value, (tokens) => emptyToNull(plainText(tokens))) },
  date: { schema: TEXT_SCHEMA, toPlain: (value) => readTokens(value, (tokens) => emptyToNull(textOf(tokens))) },
  checkbox: {
    schema: { type: ['boolean', 'null'] },
    toPlain: (value) => readTokens(value, (tokens) => parseSingle(tokens, (text) => CHECKBOX_VALUES.get(text))),
  },
  number: {
    schema: { type: ['number', 'null'] },
    toPlain: (value) => readTokens(value, (tokens) => parseSingle(tokens, parseNumber)),
  },
  // Option names contain no comma, because it is the separator.
  multi_select: {
    schema: TEXT_LIST_SCHEMA,
    toPlain: (value) =>
      readTokens(
        value,
        (tokens) =>
          plainText(tokens)
            .split(',')
            .map((name) => name.trim())
            .filter((name) => name !== ''),
        [],
      ),
  },
  file: {
    schema: { type: ['array', 'null'], items: { type: 'object' } },
    toPlain: (value) => readTokens(value, filesOf, []),
  },
  people: { schema: TEXT_LIST_SCHEMA, toPlain: (value) => pluckMember(value, 'email') },
  relation: { schema: TEXT_LIST_SCHEMA, toPlain: (value) => pluckMember(value, 'value') },
  place: {
    schema: {
      type: ['object', 'null'],
      required: ['lat', 'lon'],
      properties: { lat: { type: 'number' }, lon: { type: 'number' } },
    },
    toPlain: (value) => (Array.isArray(value) && value.length === 0 ? null : (value ?? null)),
  },
}

/** An unknown kind is converted to text if it is text, and else kept unchanged. */
const UNKNOWN_KIND: PropertyKind = { schema: {}, toPlain: (value) => readTokens(value, textOf) }

export function propertyKindOf(type: string): PropertyKind {
  return (Object.hasOwn(PROPERTY_KINDS, type) ? PROPERTY_KINDS[type] : undefined) ?? UNKNOWN_KIND
}

// ── Text as a list of tokens, each a text with optional annotations ─────────────────────────

type RichTextToken = readonly [text: string, marks?: readonly (readonly unknown[])[]]

/** Undefined is null; the package writes an empty list for "no value". */
function readTokens(
  value: unknown,
  of: (tokens: readonly RichTextToken[]) => unknown,
  empty: JsonValue = null,
): unknown {
  if (value === undefined || value === null) return null
  if (!isTokens(value)) return value
  return value.length === 0 ? empty : of(value)
}

function isTokens(value: unknown): value is readonly RichTextToken[] {
  return Array.isArray(value) && value.every((token) => Array.isArray(token) && typeof token[0] === 'string')
}

/** Drops formatting but keeps references: a link as Markdown, a date as ISO 8601. */
function textOf(tokens: readonly RichTextToken[]): string {
  return tokens
    .map((token) => {
      const link = linkOf(token)
      return dateOf(token) ?? (link === null || link === token[0] ? token[0] : `[${token[0]}](${link})`)
    })
    .join('')
}

function plainText(tokens: readonly RichTextToken[]): string {
  return tokens
    .map(([text]) => text)
    .join('')
    .trim()
}

function linkOf(token: RichTextToken | undefined): string | null {
  const link = findMark(token, 'a')
  return typeof link === 'string' ? link : null
}

/** `2026-01-31`, `2026-01-31T09:30[Europe/Berlin]`, and `start/end` for a range. */
function dateOf(token: RichTextToken): string | null {
  const date = findMark(token, 'd') as Readonly<Record<string, string | undefined>> | null
  if (typeof date?.['start_date'] !== 'string') return null
  const zone = date['time_zone'] === undefined ? '' : `[${date['time_zone']}]`
  const format = (day: string, time: string | undefined): string => (time === undefined ? day : `${day}T${time}${zone}`)
  const start = format(date['start_date'], date['start_time'])
  return date['end_date'] === undefined ? start : `${start}/${format(date['end_date'], date['end_time'])}`
}

function findMark(token: RichTextToken | undefined, mark: string): unknown {
  const marks = token?.[1]
  return Array.isArray(marks)
    ? ((marks as readonly (readonly unknown[])[]).find(([name]) => name === mark)?.[1] ?? null)
    : null
}

function filesOf(tokens: readonly RichTextToken[]): JsonValue {
  return tokens
    .filter(([text]) => !/^[\s,]*$/.test(text))
    .map((token) => ({ name: token[0], url: linkOf(token) ?? token[0] }))
}

// ── Single values ────────────────────────────────────────────────────────────────────────────────────────────────────

/** Returns the tokens unchanged if they are of another kind. */
function parseSingle(tokens: readonly RichTextToken[], of: (text: string) => unknown): unknown {
  const text = plainText(tokens)
  return text === '' ? null : (of(text) ?? tokens)
}

const CHECKBOX_VALUES: ReadonlyMap<string, boolean> = new Map([
  ['Yes', true],
  ['No', false],
])

function parseNumber(text: string): number | bigint | undefined {
  if (!/^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(text)) return undefined
  const value = Number(text)
  return Number.isSafeInteger(value) || !/^-?\d+$/.test(text) ? value : BigInt(text)
}

function emptyToNull(text: string): string | null {
  return text === '' ? null : text
}

function pluckMember(value: unknown, member: string): unknown {
  if (value === undefined || value === null) return null
  if (!Array.isArray(value)) return value
  return value.map((item: unknown) =>
    typeof item === 'object' && item !== null && member in item ? (item as Record<string, unknown>)[member] : item,
  )
}
