import type { TableShape } from '../contract/index.ts'
import { deriveSchemaColumns } from '../values/schema-columns.ts'
import { jsonSchemaOf, type Schema } from './schema.ts'

/** The typed columns that a schema declares; undefined if it declares none. */
export function tableShapeOf(schema: Schema | undefined, key: readonly string[] | undefined): TableShape | undefined {
  const json = schema === undefined ? null : jsonSchemaOf(schema)
  const columns = json === null ? [] : deriveSchemaColumns(json)
  if (columns.length === 0 && key === undefined) return undefined
  return { columns, ...(key !== undefined && { key }) }
}
