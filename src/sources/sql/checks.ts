import type { KeyRange, RangeSummary, RecordSummaries } from '../../contract/index.ts'
import { required } from '../../values/required.ts'
import type { SqlColumn, SqlDatabase } from './database.ts'
import { listIntegerIntervals, type IntegerInterval } from './integer-intervals.ts'
import type { TableOptions } from './source.ts'
import { buildWhere, type LowerBound, type RowSelection, type SqlStatement, type ValueRange } from './statements.ts'
import type { TablePlan } from './table-plan.ts'

/** The part of a selection that a key range makes. */
export type KeySelection = Pick<RowSelection, 'anyOf' | 'isTextOrder'>

/**
 * The selection of a key range by the index of the key; null for a key whose order as text has no index: of text in
 * another collation, or of several columns.
 */
export function selectKeyRange({ key }: TablePlan, range: KeyRange): KeySelection | null {
  const [column] = key
  if (column === undefined || key.length > 1) return null
  const limits = integerLimits(column)
  if (limits !== null) {
    const bound = (value: bigint, sign: '>=' | '<=') => ({ columns: [column], values: [String(value)], bound: sign })
    return {
      isTextOrder: true,
      anyOf: listIntegerIntervals(range, limits).map(({ min, max }) => ({
        lower: bound(min, '>=') as LowerBound,
        upper: bound(max, '<=') as NonNullable<ValueRange['upper']>,
      })),
    }
  }
  const { after, upTo } = range
  if (column.type !== 'uuid' || ![after, upTo].every((text) => text === null || UUID_PATTERN.test(text))) return null
  if (after === null && upTo === null) return {}
  const lower: LowerBound | null = after === null ? null : { columns: [column], values: [after], bound: '>' }
  return { anyOf: [{ lower, upper: upTo === null ? null : { columns: [column], values: [upTo] } }] }
}

const UUID_PATTERN = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Whether rows can be selected by their keys. */
export function hasSimpleKey({ key, isKeyUnique }: TablePlan): boolean {
  const [column] = key
  return key.length === 1 && isKeyUnique && column !== undefined && parseKeyOf(column) !== null
}

/** The keys that the column can hold: a comparison with another text is an error in some databases. */
export function selectKeys(column: SqlColumn, keys: readonly string[]): string[] {
  const accepts = parseKeyOf(column)
  return accepts === null ? [] : keys.filter(accepts)
}

function parseKeyOf(column: SqlColumn): ((text: string) => boolean) | null {
  const limits = integerLimits(column)
  if (limits !== null)
    return (text) => /^(?:0|-?[1-9]\d{0,19})$/.test(text) && BigInt(text) >= limits.min && BigInt(text) <= limits.max
  if (column.type === 'uuid') return (text) => UUID_PATTERN.test(text)
  return /^(?:text|varchar(?:\(\d+\))?)$/i.test(column.type) ? (text) => !text.includes('\0') : null
}

/** The values of an integer column; null for other types. */
function integerLimits({ kind, type }: SqlColumn): IntegerInterval | null {
  if (kind !== 'integer') return null
  if (type.includes('unsigned')) return { min: 0n, max: 2n ** 64n - 1n }
  const bits = type === 'int2' ? 15n : type === 'int4' ? 31n : 63n
  return { min: -(2n ** bits), max: 2n ** bits - 1n }
}

/** Counts and digests of key ranges, computed in the database; null if it cannot for this table. */
export async function summarizeTable(
  database: SqlDatabase,
  plan: TablePlan,
  { columns, deleted }: TableOptions,
  since: LowerBound | null,
  { ranges, ignore }: { readonly ranges: readonly KeyRange[]; readonly ignore: readonly string[] },
): Promise<RecordSummaries | null> {
  const { dialect } = database
  const { digests } = dialect
  // A deleted row is no record, whatever marks it.
  if (digests === null || deleted !== undefined || !plan.isKeyUnique) return null
  const selected = plan.table.columns.filter(({ name }) => (columns?.includes(name) ?? true) && !ignore.includes(name))
  const texts = selected.flatMap((column) => {
    const text = column.columnType === 'json' ? null : digests.text(column)
    return text === null ? [] : [{ name: column.name, text }]
  })
  const selections = ranges.map((range) => selectKeyRange(plan, range))
  const isIndexed = selectKeyRange(plan, { after: null, upTo: null }) !== null
  const isText =
    !isIndexed &&
    plan.key.length === 1 &&
    dialect.supportsRowComparison &&
    /^(?:text|varchar)$/.test(plan.key[0]?.type ?? '')
  if (texts.length === 0 || !(isIndexed || isText) || selections.some((selection) => isIndexed && selection === null))
    return null
  if (!(await canDigest(database, digests.condition))) return null
  const sum = digests.sum(digests.rowText(texts.map(({ text }) => text)))
  const found: RangeSummary[] = []
  if (isIndexed)
    for (const selection of selections)
      found.push(
        ...toSummaries(
          await database.readValues(buildRangeStatement(database, plan, since, required(selection, 'selection'), sum)),
        ),
      )
  else if (ranges.length > 0)
    found.push(...toSummaries(await database.readValues(buildTextStatement(database, plan, since, ranges, sum))))
  return {
    fields: texts.map(({ name }) => name),
    isPartial: texts.length < selected.length,
    ranges: found,
  }
}

/** A text that the database cannot give without loss has no digest. */
async function canDigest(database: SqlDatabase, condition: string): Promise<boolean> {
  const [value] = await database.readValues({ text: `SELECT ${condition}`, values: [] })
  return value === 't' || value === '1'
}

function buildRangeStatement(
  { dialect }: SqlDatabase,
  { table }: TablePlan,
  since: LowerBound | null,
  { anyOf }: KeySelection,
  sum: string,
): SqlStatement {
  const values: unknown[] = []
  const where = buildWhere({ lower: null, upper: null, since, ...(anyOf !== undefined && { anyOf }) }, dialect, values)
  return { text: `SELECT count(*), ${sum} FROM ${table.quoted}${where}`, values }
}

/** One pass over the table for all ranges: no index orders its keys by bytes. */
function buildTextStatement(
  { dialect }: SqlDatabase,
  plan: TablePlan,
  since: LowerBound | null,
  ranges: readonly KeyRange[],
  sum: string,
): SqlStatement {
  const column = required(plan.key[0], 'key')
  const values: unknown[] = []
  const text = dialect.textOrder(column)
  const add = (value: string): string => dialect.placeholder(values.push(value), column)
  const terms = ranges.map(({ after, upTo }) => {
    const conditions = [
      ...(after === null ? [] : [`${text} > ${add(after)}`]),
      ...(upTo === null ? [] : [`${text} <= ${add(upTo)}`]),
    ]
    const filter = conditions.length === 0 ? '' : ` FILTER (WHERE ${conditions.join(' AND ')})`
    return `count(*)${filter}, ${sum}${filter}`
  })
  const where = buildWhere({ lower: null, upper: null, since }, dialect, values)
  return { text: `SELECT ${terms.join(', ')} FROM ${plan.table.quoted}${where}`, values }
}

/** Counts and sums take turns. */
function toSummaries(values: ReadonlyArray<string | null>): RangeSummary[] {
  return Array.from({ length: values.length / 2 }, (_, at) => ({
    count: Number(values[at * 2]),
    digest: BigInt.asUintN(64, BigInt(values[at * 2 + 1] ?? '0')),
  }))
}
