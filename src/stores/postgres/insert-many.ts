import { bigintArray, integerArray, textArray } from './binary-arrays.ts'
import { binaryArray } from './binary-values.ts'
import type { Parameter, Transaction } from './connection.ts'

export type BulkColumn =
  | { readonly name: string; readonly type: 'text' | 'timestamptz'; readonly values: ReadonlyArray<string | null> }
  | { readonly name: string; readonly type: 'bigint'; readonly values: ReadonlyArray<number | null> }
  | { readonly name: string; readonly type: 'integer'; readonly values: readonly number[] }

/** Rows per statement: with more the server spends its time on allocating memory, with fewer on parsing statements. */
const ROWS_PER_STATEMENT = 2_000

/**
 * Inserts rows of the tenant, given as columns. A column with the same value in all rows, as is usual on a first load,
 * is sent as that value. The first column must differ. The next batch is encoded while the server inserts the previous
 * one.
 */
export function insertMany(
  transaction: Transaction,
  table: string,
  columns: readonly [BulkColumn, ...BulkColumn[]],
  onConflict = '',
): void {
  const count = columns[0].values.length
  for (let from = 0; from < count; from += ROWS_PER_STATEMENT)
    insertRows(transaction, table, columns, { from, to: from + ROWS_PER_STATEMENT }, onConflict)
}

function insertRows(
  transaction: Transaction,
  table: string,
  columns: readonly BulkColumn[],
  { from, to }: { from: number; to: number },
  onConflict: string,
): void {
  const parameters: Parameter[] = [transaction.tenant]
  const [arrays, selected]: [string[], string[]] = [[], []]
  for (const [at, column] of columns.entries()) {
    const { name, type } = column
    const values = column.values.slice(from, to)
    const constant = at > 0 && type !== 'timestamptz' && values.every((value) => value === values[0])
    parameters.push(constant ? (values[0] ?? null) : toArray(type, values))
    if (!constant) arrays.push(`unnest($${parameters.length}::${type}[]) as ${name}`)
    selected.push(constant ? `$${parameters.length}::${type}` : name)
  }
  // In a select list the arrays are unnested directly; in FROM each would first be materialised.
  transaction.send(
    `insert into ${table} (tenant_id, ${columns.map(({ name }) => name).join(', ')})
     select $1, ${selected.join(', ')} from (select ${arrays.join(', ')}) as given ${onConflict}`,
    ...parameters,
  )
}

function toArray(type: BulkColumn['type'], values: ReadonlyArray<string | number | null>): Buffer {
  switch (type) {
    case 'integer':
      return integerArray(values as number[])
    case 'bigint':
      return bigintArray(values as Array<number | null>)
    case 'timestamptz':
      return binaryArray('timestamptz', values)
    default:
      return textArray(values as Array<string | null>)
  }
}
