import type { FeedEntry, JsonObject, Row } from '../contract/index.ts'
import { parseJson, stringifyJson } from '../values/json.ts'
import { required } from '../values/required.ts'
import { toIsoTime } from './read-feed-page.ts'
import { resourceTypeOf, type ResourceTypes } from './resource-type.ts'

/**
 * Items as JSON text. Records are copied from the store without parsing, so that no number changes and a page is
 * cheap.
 */
export interface ItemOptions {
  /** Top-level fields of the record to include; all if absent. */
  readonly fields?: readonly string[] | undefined
  readonly resourceTypes?: ResourceTypes | undefined
}

/** Stable id of a change. It includes the commit time because a restored store reuses sequences. */
export function formatEventId({ sequence, committedAt }: Pick<FeedEntry, 'sequence' | 'committedAt'>): string {
  return `${committedAt}-${sequence}`
}

export function serializeChange(entry: FeedEntry, options: ItemOptions = {}): string {
  return serializeChanges([entry], options).join('')
}

/** Entries of one commit share their time and usually their database; each is serialized once. */
export function serializeChanges(entries: readonly FeedEntry[], { fields, resourceTypes }: ItemOptions = {}): string[] {
  let [database, type, committedAt, time] = ['', '', -1, '']
  return entries.map((entry) => {
    const { key, action, text } = entry
    if (entry.database !== database)
      [database, type] = [
        entry.database,
        `"resourceType":${JSON.stringify(resourceTypeOf(entry.database, resourceTypes))},"database":${JSON.stringify(entry.database)}`,
      ]
    if (entry.committedAt !== committedAt) [committedAt, time] = [entry.committedAt, toIsoTime(entry.committedAt)]
    const snapshot = text === null ? 'null' : fields === undefined ? text : selectFields(text, fields)
    return `{"eventId":"${formatEventId(entry)}",${type},"resourceId":${JSON.stringify(key)},"action":"${action}","updatedAt":"${time}","snapshot":${snapshot}}`
  })
}

/** Accepts a live entry or a row. */
export function serializeRow(
  { key, text, committedAt }: Pick<Row, 'key' | 'committedAt'> & { readonly text: string | null },
  { fields }: ItemOptions = {},
): string {
  const content = required(text, 'the record of a live row')
  const record = fields === undefined ? content : selectFields(content, fields)
  return `{"id":${JSON.stringify(key)},"updatedAt":"${toIsoTime(committedAt)}","record":${record}}`
}

function selectFields(text: string, fields: readonly string[]): string {
  const record = parseJson(text) as JsonObject
  return stringifyJson(
    Object.fromEntries(
      fields.flatMap((name) => {
        const value = Object.hasOwn(record, name) ? record[name] : undefined
        return value === undefined ? [] : [[name, value]]
      }),
    ),
  )
}
