import { SyncError } from '../../contract/index.ts'
import { canonicalizeInstant } from '../../values/instant.ts'
import { required } from '../../values/required.ts'
import type { WatermarkQuery } from '../watermark.ts'
import { binaryIds } from './compare-ids.ts'
import type { CursorValue } from './cursor-values.ts'

/** The table and the fields to query. */
export interface QueryTarget {
  /** The table, object or entity set. */
  readonly name: string
  /** All fields by default; required for SOQL. */
  readonly fields?: readonly string[]
  /**
   * Fields that identify a record and order records with equal cursors. Without a key, ties at a page boundary are lost
   * unless the source links its pages: return `page` in the answer then.
   */
  readonly key: readonly string[]
}

/** A SQL query with named parameters. */
export interface SqlQuery {
  readonly text: string
  readonly values: Readonly<Record<string, CursorValue>>
}

/** Writes the query of a `watermark` page as SQL with bound values. */
export function sqlQuery(selected: QueryTarget, query: WatermarkQuery): SqlQuery {
  const values: Record<string, CursorValue> = {}
  const bind = (name: string, value: CursorValue): string => {
    values[name] = value
    return `:${name}`
  }
  const text = buildSql(
    selected,
    query,
    (field, value) => bind(field === query.input.cursor_field ? 'cursor_value' : `key_${field}`, value),
    bind('page_size', query.limit),
  )
  return { text, values }
}

/** SQL with inlined values, for drivers without bind parameters. */
export function literalSqlQuery(selected: QueryTarget, query: WatermarkQuery): string {
  return buildSql(
    selected,
    query,
    (field, value) => {
      const instant = field === query.input.cursor_field ? canonicalizeInstant(String(value)) : null
      if (instant !== null) return `'${trimFraction(instant).replace('T', ' ').replace('Z', '+00')}'`
      return typeof value === 'number' ? String(value) : `'${value.replaceAll("'", "''")}'`
    },
    String(query.limit),
  )
}

/** Writes the query of a `watermark` page as SOQL. */
export function soqlQuery(selected: QueryTarget, query: WatermarkQuery): string {
  const literal: FormatLiteral = (field, value) =>
    formatInstant(field, value, query) ??
    (typeof value === 'number' ? String(value) : `'${value.replaceAll(/[\\']/g, '\\$&')}'`)
  const where = buildCondition(selected, query, literal, SQL_OPERATORS)
  const fields = selected.fields ?? ['FIELDS(ALL)']
  if (selected.fields !== undefined) fields.forEach(checkName)
  return `SELECT ${fields.join(', ')} FROM ${checkName(selected.name)}${where === null ? '' : ` WHERE ${where}`} ORDER BY ${listOrderFields(
    selected,
    query,
  )
    .map((field) => `${field} ASC`)
    .join(', ')} LIMIT ${query.limit}`
}

/** Path and query to resolve against the service root: `new URL(text, root)` does the escaping. */
export function odataQuery(selected: QueryTarget, query: WatermarkQuery): string {
  const literal: FormatLiteral = (field, value) =>
    formatInstant(field, value, query) ??
    (typeof value === 'number' ? String(value) : `'${encodeURIComponent(value.replaceAll("'", "''"))}'`)
  const filter = buildCondition(selected, query, literal, { '>': 'gt', '>=': 'ge', '=': 'eq', AND: 'and', OR: 'or' })
  const order = listOrderFields(selected, query)
    .map((field) => `${field} asc`)
    .join(',')
  const fields = selected.fields === undefined ? '' : `&$select=${selected.fields.map(checkName).join(',')}`
  return `/${checkName(selected.name)}?${filter === null ? '' : `$filter=${filter}&`}$orderby=${order}&$top=${query.limit}${fields}`
}

/** A file with the hash of its content. */
export interface ListedFile {
  readonly path: string
  readonly sha256: string
}

/** A file's cursor combines its path and content hash. */
export function fileCursor({ path, sha256 }: ListedFile): string {
  return `${path}#sha256=${sha256}`
}

/** Orders file cursors by path: a rewritten file keeps its position. */
export function fileOrder(a: string, b: string): number {
  return binaryIds(parsePath(a), parsePath(b))
}

/** Returns the files after the last processed one, and that one if its content has changed, in path order. */
export function newerFiles<File extends ListedFile>(
  files: readonly File[],
  { from, after, limit }: Pick<WatermarkQuery, 'from' | 'after' | 'limit'>,
): File[] {
  const last = after?.cursor ?? from?.cursor ?? null
  return files
    .filter(
      (file) =>
        last === null ||
        fileOrder(fileCursor(file), String(last)) > 0 ||
        (file.path === parsePath(String(last)) && fileCursor(file) !== last),
    )
    .toSorted((a, b) => binaryIds(a.path, b.path))
    .slice(0, limit)
}

type FormatLiteral = (field: string, value: CursorValue) => string
type OperatorNames = Readonly<Record<'>' | '>=' | '=' | 'AND' | 'OR', string>>

const SQL_OPERATORS: OperatorNames = { '>': '>', '>=': '>=', '=': '=', AND: 'AND', OR: 'OR' }

function buildSql(selected: QueryTarget, query: WatermarkQuery, literal: FormatLiteral, limit: string): string {
  const where = buildCondition(selected, query, literal, SQL_OPERATORS)
  const fields = selected.fields?.map(checkName).join(', ') ?? '*'
  return `SELECT ${fields} FROM ${checkName(selected.name)}${where === null ? '' : ` WHERE ${where}`} ORDER BY ${listOrderFields(selected, query).join(', ')} LIMIT ${limit}`
}

/** Sorts by cursor, then key; in a full refresh by key alone. */
function listOrderFields({ key }: QueryTarget, { input, order }: WatermarkQuery): string[] {
  return [...new Set([...(order === 'cursor' ? [input.cursor_field] : []), ...key])].map(checkName)
}

/** Selects records after the last one of the previous page, or from the cursor on. */
function buildCondition(
  selected: QueryTarget,
  query: WatermarkQuery,
  literal: FormatLiteral,
  operators: OperatorNames,
): string | null {
  const { input, from, after, order } = query
  if (after === undefined)
    return from === null
      ? null
      : `${checkName(input.cursor_field)} ${operators[from.bound]} ${literal(input.cursor_field, from.cursor)}`
  const bounds = new Map<string, CursorValue>(
    order === 'cursor' && after.cursor !== null ? [[input.cursor_field, after.cursor]] : [],
  )
  selected.key.forEach(
    (field, index) => bounds.has(field) || bounds.set(field, required(after.key[index], `key value ${field}`)),
  )
  const above = ([field, ...rest]: readonly string[]): string => {
    if (field === undefined) throw new SyncError('SYNC_INVALID', 'The query has no field to order by. Set `key`.')
    const value = literal(field, required(bounds.get(field), `value of ${field}`))
    const greater = `${field} ${operators['>']} ${value}`
    return rest.length === 0
      ? greater
      : `(${greater} ${operators.OR} (${field} ${operators['=']} ${value} ${operators.AND} ${above(rest)}))`
  }
  return above(listOrderFields(selected, query))
}

/** Keeps a UTC instant as written: in a URL, the `+` of an offset would be read as a space. */
function formatInstant(field: string, value: CursorValue, { input }: WatermarkQuery): string | null {
  const instant = field === input.cursor_field ? canonicalizeInstant(String(value)) : null
  return instant === null ? null : String(value).endsWith('Z') ? String(value) : trimFraction(instant)
}

/** Drops trailing zeros of the fraction. */
function trimFraction(instant: string): string {
  return instant.replace(/\.?0+Z$/, 'Z')
}

function parsePath(cursor: string): string {
  const at = cursor.lastIndexOf('#sha256=')
  return at === -1 ? cursor : cursor.slice(0, at)
}

/** Names are inlined into the query text, so only plain identifiers are accepted. */
function checkName(name: string): string {
  if (/^[A-Za-z_][\w$]*(?:\.[A-Za-z_][\w$]*)*$/.test(name)) return name
  throw new SyncError(
    'SYNC_INVALID',
    `${JSON.stringify(name)} cannot be used as a name in a query. Use letters, digits, "_" and dots.`,
  )
}
