import type { JsonValue } from '../../../contract/index.ts'
import type { OpenApiDocument } from './document.ts'
import { normalizeName, type ApiParameter } from './parameters.ts'
import { listProperties, typeOf } from './schema.ts'

const KEY_TYPES = new Set(['string', 'integer', 'number', ''])

/** The primary key of a record by its schema; null if it cannot be derived. */
export function guessKey(
  document: OpenApiDocument,
  item: JsonValue | undefined,
  { place, name, detail }: { readonly place: string; readonly name: string; readonly detail: string | null },
): string | null {
  const properties = listProperties(document, item, place)
  const candidates = [...properties].filter(([, schema]) => KEY_TYPES.has(typeOf(document, schema, place)))
  const find = (wanted: string): string | undefined =>
    candidates.find(([property]) => normalizeName(property) === normalizeName(wanted))?.[0]
  const singular = toSingular(name)
  const wanted = [
    'id',
    '_id',
    ...(detail === null ? [] : [detail]),
    `${singular}id`,
    'uuid',
    'guid',
    `${singular}key`,
    'key',
    'gid',
    'code',
    'slug',
  ]
  for (const candidate of wanted) {
    const found = find(candidate)
    if (found !== undefined) return found
  }
  return null
}

function toSingular(name: string): string {
  if (/ies$/i.test(name)) return `${name.slice(0, -3)}y`
  if (/(?:ss|x|ch|sh)es$/i.test(name)) return name.slice(0, -2)
  return name.replace(/s$/i, '')
}

const UPDATED =
  /^(?:date|time)?(?:last)?(?:updated?|modified|modification|changed?|edited)(?:at|on|time|date|timestamp|datetime|dateutc)?$/

/** The field of the last change, if its type says that it is a time. */
export function guessUpdatedAt(
  document: OpenApiDocument,
  item: JsonValue | undefined,
  place: string,
): { readonly field: string; readonly note?: string } | { readonly field: null; readonly note?: string } {
  const named = [...listProperties(document, item, place)].filter(([name]) => UPDATED.test(normalizeName(name)))
  const time = named.find(([, { format }]) => format === 'date-time')
  if (time !== undefined) return { field: time[0] }
  const [other] = named
  if (other === undefined) return { field: null }
  const type = typeOf(document, other[1], place)
  return {
    field: null,
    note: `the format of its field \`${other[0]}\` (${type === '' ? 'no type' : type}) is not stated; set \`cursor\` and \`time\` if it is the time of the last change`,
  }
}

const SINCE = new Set(
  'updatedsince updatedafter updatedatmin updatedmin updatedfrom updatedatfrom updatedgte updatedatgte updatedatgt updatedgt updatedatafter updatedatsince modifiedsince modifiedafter modifiedfrom modifiedgte modifiedatgte lastmodifiedafter lastmodifiedsince lastmodifiedfrom lastupdatedafter lastupdatedsince lastupdatedfrom changedsince changedafter since minupdatedat filterupdatedsince filterupdatedafter filterupdatedatgte'.split(
    ' ',
  ),
)
const UNTIL = new Set(
  'updatedbefore updateduntil updatedatmax updatedmax updatedto updatedatto updatedlte updatedatlte updatedatbefore modifiedbefore modifieduntil modifiedto modifiedlte lastmodifiedbefore lastupdatedbefore until maxupdatedat'.split(
    ' ',
  ),
)

/** The parameters that select records by the time of their last change. */
export function findTimeFilter(
  parameters: readonly ApiParameter[],
): { readonly since: string; readonly until?: string } | null {
  const query = parameters.filter((parameter) => parameter.in === 'query')
  const since = query.find(({ name }) => SINCE.has(normalizeName(name)))
  const until = query.find(({ name }) => UNTIL.has(normalizeName(name)))
  if (since === undefined) return null
  return { since: since.name, ...(until !== undefined && { until: until.name }) }
}

/** A field that is true, or has a time, in a deleted record. */
export function guessDeleted(document: OpenApiDocument, item: JsonValue | undefined, place: string): string | null {
  const names = new Set(['deleted', 'isdeleted', 'deletedat', 'deletedon'])
  const found = [...listProperties(document, item, place)].find(([name]) => names.has(normalizeName(name)))
  return found?.[0] ?? null
}
