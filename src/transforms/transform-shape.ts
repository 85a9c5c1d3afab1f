import type { ShapeColumn, TableShape } from '../contract/index.ts'
import type { ColumnPlan } from './column-rules.ts'
import { isWithin, overlaps } from './field-paths.ts'

/**
 * The source's metadata as it describes the transformed records. After `map` it describes nothing that is stored.
 */
export function transformShape(plan: ColumnPlan, shape: TableShape): TableShape {
  const { key, columns, ...rest } = shape
  if (plan.map !== null) return { ...rest, columns: [] }
  const fields = key?.map((name) => (isStored(plan, name) ? toStoredName(plan, name) : null))
  return {
    ...rest,
    columns: columns
      .filter(({ name }) => isStored(plan, name))
      .map((column) => ({ ...column, name: toStoredName(plan, column.name) })),
    ...(fields?.every((name) => name !== null) === true && { key: fields }),
  }
}

/**
 * The types that the rules determine: of cast fields, and text for fields that are replaced by text. They override the
 * declared schema, which describes the record as it is stored.
 */
export function declareRuleColumns(plan: ColumnPlan, declared: TableShape | undefined): TableShape | undefined {
  const types = new Map<string, ShapeColumn['type']>()
  for (const [path, type] of plan.cast) types.set(toStoredName(plan, path), type)
  for (const { path } of plan.protect) types.set(toStoredName(plan, path), 'text')
  const columns = (declared?.columns ?? []).map((column): ShapeColumn => {
    const type = types.get(column.name)
    types.delete(column.name)
    if (type === undefined) return column
    const { isEmptyText: _, ...rest } = column
    return { ...rest, type }
  })
  for (const [name, type] of types) if (!name.includes('.')) columns.push({ name, type })
  if (columns.length === 0 && declared === undefined) return undefined
  return { ...declared, columns }
}

/** The field of the source's key that the rules hide; null if there is none. */
export function findHiddenKeyField({ drop, protect }: ColumnPlan, { key = [] }: TableShape): string | null {
  const hidden = [...drop, ...protect.map(({ path }) => path)]
  return key.find((name) => hidden.some((path) => overlaps(path, name))) ?? null
}

/** Whether the field is in the stored record, at least in part. */
function isStored({ select, drop }: ColumnPlan, name: string): boolean {
  return select?.some((path) => overlaps(path, name)) !== false && !drop.some((path) => isWithin(name, path))
}

function toStoredName({ rename }: ColumnPlan, path: string): string {
  return rename.find(([from]) => from === path)?.[1] ?? path
}
