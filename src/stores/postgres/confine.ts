import { SyncError } from '../../contract/index.ts'
import { createConfinedError } from '../kit/confined-error.ts'
import { listRelations, type RowsQuery } from './as-of.ts'
import { parseQualifiedNames } from './qualified-names.ts'

/**
 * A role's rights would be a stronger wall, but the store's role rarely may create others. The functions of a statement
 * are therefore checked by name before it is planned, and its relations in the plan: views, rules and aliases are
 * resolved there.
 */
export function checkFunctions(sql: string): void {
  // Comments nest, and the token after one decides whether a name is called.
  if (sql.includes('/*'))
    throw new SyncError('ARGUMENT_INVALID', 'Block comments are not supported here. Begin lines with `--` instead.')
  for (const { parts } of parseQualifiedNames(sql)) {
    const last = parts.at(-1)
    if (last === undefined) continue
    if (!isCalled(sql, last.start)) continue
    const schema = parts.at(-2)?.name
    if ((schema === undefined || schema === 'pg_catalog') && isPure(last.name)) continue
    throw createConfinedError(`the function ${parts.map(({ name }) => name).join('.')}`)
  }
}

const NAME = /"[^"]*"|[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*/y
const SPACE = /\s+|--[^\n]*/y

/** Whether a parenthesis follows the name at this index. */
function isCalled(sql: string, start: number): boolean {
  let at = skip(NAME, sql, start)
  // A doubled quote belongs to the name.
  for (let next = at; sql[at] === '"'; at = next) if ((next = skip(NAME, sql, at)) === at) return true
  for (let next = skip(SPACE, sql, at); next > at; next = skip(SPACE, sql, at)) at = next
  return sql[at] === '('
}

/** Returns the index after the pattern, or `at` if it does not match there. */
function skip(pattern: RegExp, sql: string, at: number): number {
  pattern.lastIndex = at
  return pattern.test(sql) ? pattern.lastIndex : at
}

function isPure(name: string): boolean {
  return PURE_NAMES.has(name) || /^jsonb?_[a-z_]+$/.test(name)
}

/** Functions that only compute, types with a length, and keywords before a parenthesis. */
const PURE_NAMES = new Set(
  `all and any array as between by case cast cross cube distinct else except exists extract filter from full group grouping
   having ilike in inner intersect is join lateral left like limit materialized not offset on or order outer over partition
   recursive right rollup row select sets similar some then union using values when where with within
   bit char character decimal double interval numeric precision time timestamp timestamptz varchar varying zone
   array_agg avg bool_and bool_or corr count every max min mode percentile_cont percentile_disc regr_slope stddev stddev_pop
   stddev_samp string_agg sum var_pop var_samp variance
   cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank row_number
   ascii btrim char_length chr concat concat_ws initcap length lower ltrim md5 octet_length overlay position regexp_count
   regexp_like regexp_match regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table regexp_substr replace
   reverse rtrim sha256 split_part starts_with strpos substr substring translate trim upper
   abs ceil ceiling div exp floor greatest least ln log mod power round sign sqrt trunc width_bucket
   coalesce nullif age date_bin date_part date_trunc justify_days make_date make_interval make_timestamp make_timestamptz now
   to_char to_date to_number to_timestamp array_length array_position array_to_string cardinality string_to_array unnest
   encode decode row_to_json to_json to_jsonb generate_series`.split(/\s+/),
)

/** Checks the relations of a statement, in the transaction that runs it afterwards. */
export async function checkRelations(query: RowsQuery, statement: string, only: readonly string[]): Promise<void> {
  const [row] = await query(`explain (format json, verbose) ${statement}`)
  const plan = row?.['QUERY PLAN']
  const scanned = [...listRelations(typeof plan === 'string' ? JSON.parse(plan) : plan)]
  const [refused] = await query(
    `select s.name from unnest($1::text[], $2::text[]) as s (schema, name) where not exists (
       select from tidemark.databases d
       join pg_class c on c.oid in (to_regclass(d.table_name), to_regclass(d.history_name)) join pg_namespace n on n.oid = c.relnamespace
       where d.tenant_id = current_setting('tidemark.tenant') and d.name = any($3::text[]) and n.nspname = s.schema and c.relname = s.name
     ) limit 1`,
    scanned.map(([schema]) => schema),
    scanned.map(([, name]) => name),
    only,
  )
  if (refused !== undefined) throw createConfinedError(`the relation ${String(refused['name'])}`)
}
