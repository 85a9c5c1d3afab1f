import {
  SyncError,
  type ColumnType,
  type JsonObject,
  type JsonValue,
  type SyncContext,
  type TableShape,
} from '../../contract/index.ts'
import type { HttpClient } from '../kit/http-client.ts'
import { isObject } from '../kit/classify-response.ts'
import { encodePathSegment } from '../kit/origin.ts'

/**
 * Column types by field type, as the REST API returns the values. Currencies and percentages are doubles. A time of day is text
 * because it has a zone (`12:00:00.000Z`), and a blob is text because its value is a path.
 */
const COLUMN_TYPES: Readonly<Record<string, ColumnType>> = {
  address: 'json',
  anyType: 'json',
  base64: 'text',
  boolean: 'boolean',
  combobox: 'text',
  complexvalue: 'json',
  currency: 'double',
  DataCategoryGroupReference: 'text',
  date: 'date',
  datetime: 'timestamp',
  double: 'double',
  email: 'text',
  encryptedstring: 'text',
  id: 'text',
  int: 'bigint',
  location: 'json',
  long: 'bigint',
  multipicklist: 'text',
  percent: 'double',
  phone: 'text',
  picklist: 'text',
  reference: 'text',
  string: 'text',
  textarea: 'text',
  time: 'text',
  url: 'text',
}

/** The types of the system fields, known without metadata. */
export const SYSTEM_SHAPE: TableShape = {
  columns: [
    { name: 'Id', type: 'text' },
    { name: 'CreatedDate', type: 'timestamp' },
    { name: 'SystemModstamp', type: 'timestamp' },
    { name: 'IsDeleted', type: 'boolean' },
  ],
  key: ['Id'],
}

/** Reads the types of the fields; null if the user has no access to the description of the object. */
export async function readTableShape(
  client: HttpClient,
  name: string,
  context: SyncContext,
): Promise<TableShape | null> {
  const { status, body } = await client.get(`/sobjects/${encodePathSegment(name)}/describe`, {}, context, {
    answers: [403, 404],
  })
  if (status >= 400) return null
  return {
    columns: requireList(body, 'fields').flatMap(({ name: fieldName, type }) => {
      const columnType = COLUMN_TYPES[String(type)]
      return columnType === undefined ? [] : [{ name: String(fieldName), type: columnType }]
    }),
  }
}

export async function listFields(client: HttpClient, name: string, context: SyncContext): Promise<string[]> {
  const { body } = await client.get(`/sobjects/${encodePathSegment(name)}/describe`, {}, context)
  return requireList(body, 'fields').map((field) => String(field.name))
}

export function requireList(body: JsonValue, field: string): JsonObject[] {
  const list = isObject(body) ? body[field] : undefined
  if (!Array.isArray(list) || !list.every(isObject))
    throw new SyncError('SOURCE_INVALID', `Salesforce returned a response without \`${field}\`.`)
  return list
}
