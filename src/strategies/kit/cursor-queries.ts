import { SyncError } from '../../contract/index.ts'
import { canonicalizeInstant } from '../../values/instant.ts'
import type { WatermarkQuery } from '../watermark.ts'
import { binaryIds } from './compare-ids.ts'
import type { CursorValue } from './cursor-values.ts'

/** What is asked for, apart from where the sync stands. */
export interface QueryTarget {
  /** The table, object or entity set. */
  readonly name: string
  /** All unless given; SOQL needs them. */
  readonly fields?: readonly string[]
  /**
   * What tells records with one cursor apart and orders them. With none, ties at a page's border are lost unless the source
   * links its pages itself: give `page` in the answer then.
   */
  readonly key: readonly string[]
}

export interface SqlQuery {
  readonly text: string
  readonly values: Readonly<Record<string, CursorValue>>
}

/** SQL with named parameters. */
export function sqlQuery(selected: QueryTarget, query: WatermarkQuery): SqlQuery {
  const values: Record<string, CursorValue> = {}
  const bind = (name: string, value: CursorValue): string => {
    values[name] = value
    return `:${name}`
  }
  const text = buildSql(selected, query, (field, value) => bind(field === query.input.cursor_field ? 'cursor_value' : `key_${field}`, value), bind('page_size', query.limit))
  return { text, values }
}

/** SQL with the values written into it, for drivers that bind none. */
export function literalSqlQuery(selected: QueryTarget, query: WatermarkQuery): string {
  return buildSql(selected, query, (field, value) => {
    const instant = field === query.input.cursor_field ? canonicalizeInstant(String(value)) : null
    if (instant !== null) return `'${trimFraction(instant).replace('T', ' ').replace('Z', '+00')}'`
    return typeof value === 'number' ? String(value) : `'${value.replaceAll("'", "''")}'`
  }, String(query.limit))
}

export function soqlQuery(selected: QueryTarget, query: WatermarkQuery): string {
  const literal: FormatLiteral = (field, value) => formatInstant(field, value, query) ?? (typeof value === 'number' ? String(value) : `'${value.replaceAll(/[\\']/g, '\\$&')}'`)
  const where = buildCondition(selected, query, literal, SQL_OPERATORS)
  const fields = selected.fields ?? ['FIELDS(ALL)']
  if (selected.fields !== undefined) fields.forEach(checkName)
  return `SELECT ${fields.join(', ')} FROM ${checkName(selected.name)}${where === null ? '' : ` WHERE ${where}`} ORDER BY ${listOrderFields(selected, query).map((field) => `${field} ASC`).join(', ')} LIMIT ${query.limit}`
}

/** Path and query, to be resolved against the service's root: `new URL(text, root)` escapes what has to be. */
export function odataQuery(selected: QueryTarget, query: WatermarkQuery): string {
  const literal: FormatLiteral = (field, value) => formatInstant(field, value, query) ?? (typeof value === 'number' ? String(value) : `'${encodeURIComponent(value.replaceAll("'", "''"))}'`)
  const filter = buildCondition(selected, query, literal, { '>': 'gt', '>=': 'ge', '=': 'eq', AND: 'and', OR: 'or' })
  const order = listOrderFields(selected, query).map((field) => `${field} asc`).join(',')
  const fields = selected.fields === undefined ? '' : `&$select=${selected.fields.map(checkName).join(',')}`
  return `/${checkName(selected.name)}?${filter === null ? '' : `$filter=${filter}&`}$orderby=${order}&$top=${query.limit}${fields}`
}

export interface ListedFile {
  readonly path: string
  readonly sha256: string
}

/** The cursor of a file: where it lies and what is in it. */
export function fileCursor({ path, sha256 }: ListedFile): string {
  return `${path}#sha256=${sha256}`
}

/** Orders file cursors by their paths: a file that was written anew stands where it stood. */
export function fileOrder(a: string, b: string): number {
  return binaryIds(parsePath(a), parsePath(b))
}

/** The files after the last one that was processed, and that one too when it holds something else by now; in the order of their paths. */
export function newerFiles<File extends ListedFile>(files: readonly File[], { from, after, limit }: Pick<WatermarkQuery, 'from' | 'after' | 'limit'>): File[] {
  const last = after?.cursor ?? from?.cursor ?? null
  return files
    .filter((file) => last === null || fileOrder(fileCursor(file), String(last)) > 0 || (file.path === parsePath(String(last)) && fileCursor(file) !== last))
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

/** The cursor and then the key; in a full refresh the key alone. */
function listOrderFields({ key }: QueryTarget, { input, order }: WatermarkQuery): string[] {
  return [...new Set([...(order === 'cursor' ? [input.cursor_field] : []), ...key])].map(checkName)
}

/** Above the last record of the page before, or from the position on. */
function buildCondition(selected: QueryTarget, query: WatermarkQuery, literal: FormatLiteral, words: OperatorNames): string | null {
  const { input, from, after, order } = query
  if (after === undefined) return from === null ? null : `${checkName(input.cursor_field)} ${words[from.bound]} ${literal(input.cursor_field, from.cursor)}`
  const place = new Map<string, CursorValue>(order === 'cursor' && after.cursor !== null ? [[input.cursor_field, after.cursor]] : [])
  selected.key.forEach((field, index) => place.has(field) || place.set(field, after.key[index]!))
  const columns = listOrderFields(selected, query)
  const above = (index: number): string => {
    const field = columns[index]!
    const value = literal(field, place.get(field)!)
    const greater = `${field} ${words['>']} ${value}`
    return index === columns.length - 1 ? greater : `(${greater} ${words.OR} (${field} ${words['=']} ${value} ${words.AND} ${above(index + 1)}))`
  }
  return above(0)
}

/** As it was written, when that is UTC: a `+` would be read as a space. */
function formatInstant(field: string, value: CursorValue, { input }: WatermarkQuery): string | null {
  const instant = field === input.cursor_field ? canonicalizeInstant(String(value)) : null
  return instant === null ? null : String(value).endsWith('Z') ? String(value) : trimFraction(instant)
}

/** Without the zeros behind the last digit that says something. */
function trimFraction(instant: string): string {
  return instant.replace(/\.?0+Z$/, 'Z')
}

function parsePath(cursor: string): string {
  const at = cursor.lastIndexOf('#sha256=')
  return at === -1 ? cursor : cursor.slice(0, at)
}

/** Names stand in the text as they are, so they have to be plain. */
function checkName(name: string): string {
  if (/^[A-Za-z_][\w$]*(?:\.[A-Za-z_][\w$]*)*$/.test(name)) return name
  throw new SyncError('SYNC_INVALID', `${JSON.stringify(name)} cannot stand in a query as it is; a name is made of letters, digits, "_" and dots.`)
}
