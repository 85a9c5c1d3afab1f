import { bigintArray, integerArray, textArray } from './arrays.ts'
import type { Parameter, Transaction } from './connection.ts'

export type BulkColumn =
  | { readonly name: string; readonly type: 'text' | 'jsonb'; readonly values: ReadonlyArray<string | null> }
  | { readonly name: string; readonly type: 'bigint'; readonly values: ReadonlyArray<number | null> }
  | { readonly name: string; readonly type: 'integer'; readonly values: readonly number[] }

/**
 * Inserts rows of the tenant, given as columns. One that has the same value in all rows, as most have on a first load,
 * travels as that value: the server unpacks every array it is given into a table of its own. The first column must differ.
 */
export function insertMany(transaction: Transaction, table: string, columns: readonly [BulkColumn, ...BulkColumn[]], onConflict = ''): void {
  if (columns[0].values.length === 0) return
  const parameters: Parameter[] = [transaction.tenant]
  const [arrays, names, selected]: [string[], string[], string[]] = [[], [], []]
  for (const [at, { name, type, values }] of columns.entries()) {
    const constant = at > 0 && values.every((value) => value === values[0])
    const stored = type === 'jsonb' ? 'text' : type
    parameters.push(constant ? values[0]! : toArray(columns[at]!))
    if (!constant) {
      arrays.push(`$${parameters.length}::${stored}[]`)
      names.push(name)
    }
    selected.push(`${constant ? `$${parameters.length}::${stored}` : name}${type === 'jsonb' ? '::jsonb' : ''}`)
  }
  transaction.send(
    `insert into ${table} (tenant_id, ${columns.map(({ name }) => name).join(', ')})
     select $1, ${selected.join(', ')} from unnest(${arrays.join(', ')}) as given (${names.join(', ')}) ${onConflict}`,
    ...parameters,
  )
}

function toArray(column: BulkColumn): Buffer {
  switch (column.type) {
    case 'integer':
      return integerArray(column.values)
    case 'bigint':
      return bigintArray(column.values)
    default:
      return textArray(column.values)
  }
}
