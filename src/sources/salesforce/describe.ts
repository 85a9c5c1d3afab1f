import { SyncError, type ColumnType, type JsonObject, type JsonValue, type SyncContext, type TableShape } from '../../contract/index.ts'
import type { HttpClient } from '../kit/http-client.ts'
import { isObject } from '../kit/classify-response.ts'
import { encodePathSegment } from '../kit/origin.ts'

/**
 * Field types as the REST API writes their values. Currencies and percentages are doubles in the API. Texts are also a time of the
 * day, which has a zone (`12:00:00.000Z`), and a blob, which is the path to it.
 */
const COLUMN_TYPES: Readonly<Record<string, ColumnType>> = {
  address: 'json', anyType: 'json', base64: 'text', boolean: 'boolean', combobox: 'text', complexvalue: 'json', currency: 'double',
  DataCategoryGroupReference: 'text', date: 'date', datetime: 'timestamp', double: 'double', email: 'text', encryptedstring: 'text', id: 'text',
  int: 'bigint', location: 'json', long: 'bigint', multipicklist: 'text', percent: 'double', phone: 'text', picklist: 'text', reference: 'text',
  string: 'text', textarea: 'text', time: 'text', url: 'text',
}

/** Of every object, whether its description may be read or not. */
export const SYSTEM_SHAPE: TableShape = {
  columns: [
    { name: 'Id', type: 'text' }, { name: 'CreatedDate', type: 'timestamp' }, { name: 'SystemModstamp', type: 'timestamp' }, { name: 'IsDeleted', type: 'boolean' },
  ],
  key: ['Id'],
}

/** The types of an object's fields; null when the user may not see its description. */
export async function readTableShape(client: HttpClient, name: string, context: SyncContext): Promise<TableShape | null> {
  const { status, body } = await client.get(`/sobjects/${encodePathSegment(name)}/describe`, {}, context, { answers: [403, 404] })
  if (status >= 400) return null
  return { columns: requireList(body, 'fields').flatMap(({ name: field, type }) => {
    const columnType = COLUMN_TYPES[String(type)]
    return columnType === undefined ? [] : [{ name: String(field), type: columnType }]
  }) }
}

export async function listFields(client: HttpClient, name: string, context: SyncContext): Promise<string[]> {
  const { body } = await client.get(`/sobjects/${encodePathSegment(name)}/describe`, {}, context)
  return requireList(body, 'fields').map((field) => String(field.name))
}

export function requireList(body: JsonValue, member: string): JsonObject[] {
  const list = isObject(body) ? body[member] : undefined
  if (!Array.isArray(list) || !list.every(isObject)) throw new SyncError('SOURCE_INVALID', `Salesforce answered without \`${member}\`.`)
  return list
}
