import type { ColumnType, Execute, ScalarType, SyncContext, TableShape } from '../../contract/index.ts'
import type { EntitySet } from './entity-set.ts'
import type { SetPlan } from './plan.ts'

/** Integers of 64 bits and decimals are asked for as texts; times of the day and bytes are written in ways that only a text keeps. */
const TYPES: Readonly<Record<string, ScalarType>> = {
  'Edm.Boolean': 'boolean', 'Edm.Byte': 'bigint', 'Edm.Date': 'date', 'Edm.DateTime': 'timestamp', 'Edm.DateTimeOffset': 'timestamp', 'Edm.Decimal': 'decimal',
  'Edm.Double': 'double', 'Edm.Guid': 'uuid', 'Edm.Int16': 'bigint', 'Edm.Int32': 'bigint', 'Edm.Int64': 'decimal', 'Edm.SByte': 'bigint', 'Edm.Single': 'double',
  'Edm.String': 'text',
}

/** Version 2 writes them as texts, with an exponent where it likes. */
const TEXTS_OF_2: ReadonlySet<string> = new Set(['Edm.Double', 'Edm.Single'])

/** Adds the types of `$metadata`, which is read once per cycle, to the pages. */
export function withShape<Read extends Execute<any>>(entitySet: EntitySet, execute: Read): Read {
  const typed = async (...given: Parameters<Read>): Promise<Awaited<ReturnType<Read>>> => {
    const page = await execute(...(given as [unknown, SyncContext]))
    const plan = entitySet.knownPlan
    return { ...page, ...(plan !== null && { tables: [shapeOf(plan)] }) } as Awaited<ReturnType<Read>>
  }
  return Object.assign(typed, execute)
}

function shapeOf({ type, key, metadata: { version } }: SetPlan): TableShape {
  const columns = [...type.properties.values()].flatMap(({ name, type: edm }) => {
    const columnType = columnTypeOf(edm, version)
    return columnType === null ? [] : [{ name, type: columnType }]
  })
  return { columns, key: key.map(({ name }) => name) }
}

/** Null where only the values tell. */
function columnTypeOf(edm: string, version: 2 | 4): ColumnType | null {
  const item = /^Collection\((.*)\)$/.exec(edm)?.[1]
  const type = version === 2 && TEXTS_OF_2.has(edm) ? 'text' : TYPES[item ?? edm]
  if (type === undefined) return null
  return item === undefined ? type : `${type}[]`
}
