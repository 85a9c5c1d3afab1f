import { SyncError, type ScalarType, type ShapeColumn, type SyncContext, type TableShape } from '../../contract/index.ts'
import type { HttpClient } from '../kit/http-client.ts'
import { isObject } from '../kit/classify-response.ts'

/**
 * Types of the dictionary whose texts a column gives back to the letter: date-times in UTC (`2026-01-31 12:00:00`), dates, and digits.
 * All others stay the texts that they are: a boolean is `true` or `false`, a duration is a date-time after 1970, a price has a currency.
 */
const COLUMN_TYPES: Readonly<Record<string, ScalarType>> = {
  decimal: 'decimal', due_date: 'datetime', glide_date: 'date', glide_date_time: 'datetime', integer: 'decimal', longint: 'decimal', percent_complete: 'decimal',
}

/** Of every table that can be read, whether its dictionary may be read or not. */
export const SYSTEM_SHAPE: TableShape = {
  columns: [{ name: 'sys_id', type: 'text' }, { name: 'sys_created_on', type: 'datetime' }, { name: 'sys_updated_on', type: 'datetime' }],
  key: ['sys_id'],
}

const PAGE_SIZE = 1_000
const PAGES_MAX = 20
/** How many tables a table may extend, one by the other. */
const INHERITANCE_DEPTH_MAX = 10

/** Reads the types of a table's columns, its own and those of the tables it extends; null when the user may not read the dictionary. */
export function createDictionaryReader(client: HttpClient, table: string): (context: SyncContext) => Promise<TableShape | null> {
  // A table does not change what it extends, so it is asked for once.
  let line: readonly string[] | null = null
  return async (context) => {
    line ??= await readTableAncestry(client, table, context)
    return line === null ? null : await readTableShape(client, line, context)
  }
}

/** The table, then those it extends; null when the user may not read them. */
async function readTableAncestry(client: HttpClient, table: string, context: SyncContext): Promise<string[] | null> {
  const levels = Array.from({ length: INHERITANCE_DEPTH_MAX }, (_, level) => `${'super_class.'.repeat(level)}name`)
  const [own] = (await readVisibleRows(client, 'sys_db_object', `name=${table}`, levels, context)) ?? []
  return own === undefined ? null : levels.flatMap((level) => own[level] ?? []).filter((name) => name !== '')
}

async function readTableShape(client: HttpClient, line: readonly string[], context: SyncContext): Promise<TableShape | null> {
  const entries = await readVisibleRows(client, 'sys_dictionary', `nameIN${line.join(',')}^elementISNOTEMPTY`, ['name', 'element', 'internal_type'], context)
  // Rows that the user may not see are left out of an answer.
  if (entries === null || entries.length === 0) return null
  const columns = new Map<string, ShapeColumn>()
  for (const ancestor of line.toReversed()) {
    for (const { name, element, internal_type: kind } of entries) if (name === ancestor) columns.set(element!, toColumn(element!, kind ?? ''))
  }
  return { columns: [...columns.values()] }
}

function toColumn(name: string, kind: string): ShapeColumn {
  const type = COLUMN_TYPES[kind]
  return type === undefined ? { name, type: 'text' } : { name, type, isEmptyText: true }
}

/** Null when the reader may see none of the rows and is told so. */
function readVisibleRows(client: HttpClient, table: string, query: string, fields: readonly string[], context: SyncContext): Promise<DictionaryRow[] | null> {
  return readRows(client, { table, query, fields, pagesMax: PAGES_MAX, refusalStatuses: [403, 404] }, context)
}

export async function readAllRows(client: HttpClient, table: string, query: string, fields: readonly string[], context: SyncContext): Promise<DictionaryRow[]> {
  return (await readRows(client, { table, query, fields, pagesMax: Infinity, refusalStatuses: [] }, context))!
}

type DictionaryRow = Record<string, string>

interface RowsRequest {
  readonly table: string
  readonly query: string
  readonly fields: readonly string[]
  readonly pagesMax: number
  /** Statuses that are a refusal. */
  readonly refusalStatuses: readonly number[]
}

/** Until all are there that the instance counts, or else a page is empty: one may come short of rows that the reader may not see. */
async function readRows(client: HttpClient, { table, query, fields, pagesMax, refusalStatuses: answers }: RowsRequest, context: SyncContext): Promise<DictionaryRow[] | null> {
  const rows: DictionaryRow[] = []
  for (let page = 0; page < pagesMax; page++) {
    const { status, body, headers } = await client.get(`/${table}`, {
      sysparm_query: `${query}^ORDERBYsys_id`, sysparm_fields: fields.join(','), sysparm_limit: PAGE_SIZE, sysparm_offset: page * PAGE_SIZE, sysparm_exclude_reference_link: true,
    }, context, { answers })
    if (status >= 400) return null
    if (!isObject(body) || !Array.isArray(body.result) || !body.result.every(isObject)) throw new SyncError('SOURCE_INVALID', `ServiceNow answered without the rows of ${table}.`)
    rows.push(...body.result.map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, typeof value === 'string' ? value : '']))))
    const total = headers.get('x-total-count')
    if (total === null ? body.result.length === 0 : (page + 1) * PAGE_SIZE >= Number(total)) break
  }
  return rows
}
