import type { JsonObject } from '../../contract/index.ts'
import type { JsonSchema } from '../schema.ts'
import type { NotionProperties } from './manifest.ts'
import { propertyKindOf } from './property-kinds.ts'

/** Columns for the parts of a Notion page that are not properties. */
const PAGE_COLUMNS = ['_icon', '_cover', '_content'] as const

export interface NotionPage {
  readonly properties?: unknown
  readonly icon?: unknown
  readonly cover?: unknown
  readonly pageContentMarkdown?: unknown
}

/** Converts a change to a record: every declared property is a column, null if the change does not contain it. */
export function createRecordReader(properties: NotionProperties): (page: NotionPage) => JsonObject {
  const columns = Object.entries(properties).map(([name, { type }]) => [name, propertyKindOf(type).toPlain] as const)
  return (page) => {
    const given = page.properties as Readonly<Record<string, unknown>>
    // Not an object: the engine rejects it.
    if (typeof given !== 'object' || given === null || Array.isArray(given)) return given as JsonObject
    const record: Record<string, unknown> = {}
    for (const [name, plain] of columns) record[name] = plain(given[name])
    for (const name of Object.keys(given)) if (!Object.hasOwn(record, name)) record[name] = given[name]
    for (const [name, value] of Object.entries(pageColumns(page)))
      if (value != null && !Object.hasOwn(record, name)) record[name] = value
    return record as JsonObject
  }
}

/** An undeclared property or a value of another kind quarantines the record. */
export function createRecordSchema(properties: NotionProperties): JsonSchema {
  const columns = Object.entries(properties).map(([name, { type }]) => [name, propertyKindOf(type).schema])
  return {
    type: 'object',
    additionalProperties: false,
    properties: {
      ...Object.fromEntries(PAGE_COLUMNS.map((name) => [name, { type: 'string' }])),
      ...Object.fromEntries(columns),
    },
  }
}

function pageColumns({ icon, cover, pageContentMarkdown }: NotionPage): Record<(typeof PAGE_COLUMNS)[number], unknown> {
  return {
    _icon: iconOf(icon),
    _cover: (cover as { url?: unknown } | null | undefined)?.url ?? cover,
    _content: pageContentMarkdown,
  }
}

function iconOf(icon: unknown): unknown {
  const { type, value, url, icon: name, color } = (icon ?? {}) as Readonly<Record<string, unknown>>
  switch (type) {
    case 'emoji':
      return value
    case 'image':
      return url
    case 'notion':
      return `notion:${String(name)}:${String(color)}`
    default:
      return icon
  }
}
