import type { FeedEntry, JsonObject, Row } from '../contract/index.ts'
import { parseJson, stringifyJson } from '../values/json.ts'
import { isoTime } from './read-page.ts'
import { resourceTypeOf, type ResourceTypes } from './resource-type.ts'

/**
 * Items as JSON text. A record goes from the store to the wire as the text it is: nothing is parsed, so that no number
 * changes on the way and a page costs little.
 */
export interface ItemOptions {
  /** Top-level members of the record to show; all when absent. */
  readonly fields?: readonly string[] | undefined
  readonly resourceTypes?: ResourceTypes | undefined
}

/** What a change is called, for ever: its time makes it another after the store was set back. */
export function eventId({ sequence, committedAt }: Pick<FeedEntry, 'sequence' | 'committedAt'>): string {
  return `${committedAt}-${sequence}`
}

export function changeText(entry: FeedEntry, options: ItemOptions = {}): string {
  return changeTexts([entry], options)[0]!
}

/** Entries of one commit share their time, and most their database: each is written once. */
export function changeTexts(entries: readonly FeedEntry[], { fields, resourceTypes }: ItemOptions = {}): string[] {
  let [database, type, committedAt, time] = ['', '', -1, '']
  return entries.map((entry) => {
    const { key, action, text } = entry
    if (entry.database !== database) [database, type] = [entry.database, `"resourceType":${JSON.stringify(resourceTypeOf(entry.database, resourceTypes))},"database":${JSON.stringify(entry.database)}`]
    if (entry.committedAt !== committedAt) [committedAt, time] = [entry.committedAt, isoTime(entry.committedAt)]
    const snapshot = text === null ? 'null' : fields === undefined ? text : project(text, fields)
    return `{"eventId":"${eventId(entry)}",${type},"resourceId":${JSON.stringify(key)},"action":"${action}","updatedAt":"${time}","snapshot":${snapshot}}`
  })
}

/** A live entry, or a row. */
export function rowText({ key, text, committedAt }: Pick<Row, 'key' | 'committedAt'> & { readonly text: string | null }, { fields }: ItemOptions = {}): string {
  const record = fields === undefined ? text! : project(text!, fields)
  return `{"id":${JSON.stringify(key)},"updatedAt":"${isoTime(committedAt)}","record":${record}}`
}

function project(text: string, fields: readonly string[]): string {
  const record = parseJson(text) as JsonObject
  return stringifyJson(Object.fromEntries(fields.filter((name) => Object.hasOwn(record, name)).map((name) => [name, record[name]!])))
}
