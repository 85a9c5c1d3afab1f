import {
  SyncError,
  type ScalarType,
  type ShapeColumn,
  type SyncContext,
  type TableShape,
} from '../../contract/index.ts'
import type { HttpClient } from '../kit/http-client.ts'
import { isObject } from '../kit/classify-response.ts'
import { required } from '../../values/required.ts'

/**
 * Column types by dictionary type, for types whose text survives a round trip: date-times in UTC (`2026-01-31 12:00:00`), dates,
 * and numbers. All others stay text: a boolean is `true` or `false`, a duration is a date-time after 1970, a price has a currency.
 */
const COLUMN_TYPES: Readonly<Record<string, ScalarType>> = {
  decimal: 'decimal',
  due_date: 'datetime',
  glide_date: 'date',
  glide_date_time: 'datetime',
  integer: 'decimal',
  longint: 'decimal',
  percent_complete: 'decimal',
}

/** The types of the system columns, known without the dictionary. */
export const SYSTEM_SHAPE: TableShape = {
  columns: [
    { name: 'sys_id', type: 'text' },
    { name: 'sys_created_on', type: 'datetime' },
    { name: 'sys_updated_on', type: 'datetime' },
  ],
  key: ['sys_id'],
}

const PAGE_SIZE = 1_000
const PAGES_MAX = 20
const INHERITANCE_DEPTH_MAX = 10

/** Reads the column types of a table and of the tables it extends; null if the user has no access to the dictionary. */
export function createDictionaryReader(
  client: HttpClient,
  table: string,
): (context: SyncContext) => Promise<TableShape | null> {
  // The ancestry of a table never changes, so it is read once.
  let ancestry: readonly string[] | null = null
  return async (context) => {
    ancestry ??= await readTableAncestry(client, table, context)
    return ancestry === null ? null : await readTableShape(client, ancestry, context)
  }
}

/** The table, then the tables it extends; null if the user has no access. */
async function readTableAncestry(client: HttpClient, table: string, context: SyncContext): Promise<string[] | null> {
  const levels = Array.from({ length: INHERITANCE_DEPTH_MAX }, (_, level) => `${'super_class.'.repeat(level)}name`)
  const [own] = (await readVisibleRows(client, 'sys_db_object', `name=${table}`, levels, context)) ?? []
  return own === undefined ? null : levels.flatMap((level) => own[level] ?? []).filter((name) => name !== '')
}

async function readTableShape(
  client: HttpClient,
  ancestry: readonly string[],
  context: SyncContext,
): Promise<TableShape | null> {
  const entries = await readVisibleRows(
    client,
    'sys_dictionary',
    `nameIN${ancestry.join(',')}^elementISNOTEMPTY`,
    ['name', 'element', 'internal_type'],
    context,
  )
  // Responses omit rows that the user has no access to.
  if (entries === null || entries.length === 0) return null
  const columns = new Map<string, ShapeColumn>()
  for (const ancestor of ancestry.toReversed()) {
    for (const { name, element, internal_type: kind } of entries) {
      if (name === ancestor && element !== undefined) columns.set(element, toColumn(element, kind ?? ''))
    }
  }
  return { columns: [...columns.values()] }
}

function toColumn(name: string, kind: string): ShapeColumn {
  const type = COLUMN_TYPES[kind]
  return type === undefined ? { name, type: 'text' } : { name, type, isEmptyText: true }
}

/** Null if the source denies access to the table. */
function readVisibleRows(
  client: HttpClient,
  table: string,
  query: string,
  fields: readonly string[],
  context: SyncContext,
): Promise<DictionaryRow[] | null> {
  return readRows(client, { table, query, fields, pagesMax: PAGES_MAX, refusalStatuses: [403, 404] }, context)
}

export async function readAllRows(
  client: HttpClient,
  table: string,
  query: string,
  fields: readonly string[],
  context: SyncContext,
): Promise<DictionaryRow[]> {
  const rows = await readRows(client, { table, query, fields, pagesMax: Infinity, refusalStatuses: [] }, context)
  return required(rows, `The list of ${table} rows`)
}

type DictionaryRow = Record<string, string>

interface RowsRequest {
  readonly table: string
  readonly query: string
  readonly fields: readonly string[]
  readonly pagesMax: number
  /** Statuses that mean access denied. */
  readonly refusalStatuses: readonly number[]
}

/** Reads up to the total count, or up to an empty page without a count. A page may be short because access rules omit rows. */
async function readRows(
  client: HttpClient,
  { table, query, fields, pagesMax, refusalStatuses }: RowsRequest,
  context: SyncContext,
): Promise<DictionaryRow[] | null> {
  const rows: DictionaryRow[] = []
  for (let page = 0; page < pagesMax; page++) {
    const { status, body, headers } = await client.get(
      `/${table}`,
      {
        sysparm_query: `${query}^ORDERBYsys_id`,
        sysparm_fields: fields.join(','),
        sysparm_limit: PAGE_SIZE,
        sysparm_offset: page * PAGE_SIZE,
        sysparm_exclude_reference_link: true,
      },
      context,
      { answers: refusalStatuses },
    )
    if (status >= 400) return null
    if (!isObject(body) || !Array.isArray(body.result) || !body.result.every(isObject))
      throw new SyncError('SOURCE_INVALID', `ServiceNow returned a response without the rows of ${table}.`)
    rows.push(
      ...body.result.map((row) =>
        Object.fromEntries(Object.entries(row).map(([name, value]) => [name, typeof value === 'string' ? value : ''])),
      ),
    )
    const total = headers.get('x-total-count')
    if (total === null ? body.result.length === 0 : (page + 1) * PAGE_SIZE >= Number(total)) break
  }
  return rows
}
