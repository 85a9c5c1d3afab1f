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

/** A field as the description of its object names it. */
export interface DescribedField {
  readonly name: string
  /** The type in the description, such as `currency`. */
  readonly type: string
}

/** The description of one object, read once in each cycle. */
export class ObjectDescription {
  readonly #client: HttpClient
  readonly #name: string
  /** By cycle, because syncs of several tenants may alternate. */
  readonly #fieldsByCycle = new Map<string, readonly DescribedField[] | null>()

  constructor(client: HttpClient, name: string) {
    this.#client = client
    this.#name = name
  }

  /** Null if the user has no access to the description of the object. */
  async readFields(context: SyncContext): Promise<readonly DescribedField[] | null> {
    const cycle = `${context.cycle.id} ${context.cycle.startedAt}`
    const cached = this.#fieldsByCycle.get(cycle)
    if (cached !== undefined) return cached
    const { status, body } = await this.#client.get(
      `/sobjects/${encodePathSegment(this.#name)}/describe`,
      {},
      context,
      { answers: [403, 404] },
    )
    const fields =
      status >= 400
        ? null
        : requireList(body, 'fields').map(({ name, type }) => ({ name: String(name), type: String(type) }))
    if (this.#fieldsByCycle.size === CYCLES_MAX) this.#fieldsByCycle.clear()
    this.#fieldsByCycle.set(cycle, fields)
    return fields
  }
}

const CYCLES_MAX = 64

/** The column types of these fields. Fields of an unknown type have none. */
export function toTableShape(fields: readonly DescribedField[]): TableShape {
  return {
    columns: fields.flatMap(({ name, type }) => {
      const columnType = COLUMN_TYPES[type]
      return columnType === undefined ? [] : [{ name, type: columnType }]
    }),
  }
}

/** Whether Bulk API 2.0 returns the field with the value that the REST API returns. It has no compound fields and no blobs. */
export function isReadableInBulk({ type }: DescribedField): boolean {
  return type !== 'base64' && COLUMN_TYPES[type] !== undefined && COLUMN_TYPES[type] !== 'json'
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
