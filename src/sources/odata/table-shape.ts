import type { ColumnType, Execute, ScalarType, SyncContext, TableShape } from '../../contract/index.ts'
import type { EntitySet } from './entity-set.ts'
import type { EntitySetPlan } from './entity-set-plan.ts'

/**
 * 64-bit integers and decimals are requested as strings. Times of day and binary values have no type here: only text
 * preserves them.
 */
const COLUMN_TYPES: Readonly<Record<string, ScalarType>> = {
  'Edm.Boolean': 'boolean',
  'Edm.Byte': 'bigint',
  'Edm.Date': 'date',
  'Edm.DateTime': 'timestamp',
  'Edm.DateTimeOffset': 'timestamp',
  'Edm.Decimal': 'decimal',
  'Edm.Double': 'double',
  'Edm.Guid': 'uuid',
  'Edm.Int16': 'bigint',
  'Edm.Int32': 'bigint',
  'Edm.Int64': 'decimal',
  'Edm.SByte': 'bigint',
  'Edm.Single': 'double',
  'Edm.String': 'text',
}

/** Version 2 writes these as strings, possibly with an exponent. */
const V2_TEXT_TYPES: ReadonlySet<string> = new Set(['Edm.Double', 'Edm.Single'])

/** Adds column types from `$metadata`, which is read once per cycle, to the pages. */
export function withTableShape<Read extends Execute<any>>(entitySet: EntitySet, execute: Read): Read {
  const typed = async (...given: Parameters<Read>): Promise<Awaited<ReturnType<Read>>> => {
    const page = await execute(...(given as [unknown, SyncContext]))
    const plan = entitySet.cachedPlan
    return { ...page, ...(plan !== null && { tables: [buildTableShape(plan)] }) } as Awaited<ReturnType<Read>>
  }
  return Object.assign(typed, execute)
}

function buildTableShape({ type, key, metadata: { version } }: EntitySetPlan): TableShape {
  const columns = [...type.properties.values()].flatMap(({ name, type: edm }) => {
    const columnType = toColumnType(edm, version)
    return columnType === null ? [] : [{ name, type: columnType }]
  })
  return { columns, key: key.map(({ name }) => name) }
}

/** Returns null if the type must be inferred from the values. */
function toColumnType(edm: string, version: 2 | 4): ColumnType | null {
  const item = /^Collection\((.*)\)$/.exec(edm)?.[1]
  const type = version === 2 && V2_TEXT_TYPES.has(edm) ? 'text' : COLUMN_TYPES[item ?? edm]
  if (type === undefined) return null
  return item === undefined ? type : `${type}[]`
}
