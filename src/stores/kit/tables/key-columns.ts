import type { TableColumn } from './column.ts'
import { required } from '../../../values/required.ts'

/** The constraints that a declared key puts on the columns of its fields. */
export interface KeyPlan {
  /** Columns to make not null, and unique together, in this order; null when the key is refused. */
  readonly names: readonly string[] | null
  readonly columns: readonly TableColumn[]
  readonly drift: readonly string[]
}

/** True when a key is declared that is neither enforced nor refused yet. */
export function isKeyUndecided(columns: readonly TableColumn[], key: readonly string[]): boolean {
  return key.length > 0 && !columns.some((column) => column.key !== undefined)
}

/** The fields of a key that have no column yet. */
export function keyMembersWithoutColumn(columns: readonly TableColumn[], key: readonly string[]): string[] {
  return key.filter((member) => (columns.find((column) => column.member === member)?.name ?? null) === null)
}

/**
 * A key is enforced only on an empty table: existing rows may violate it, and a large table would be locked for long.
 */
export function planKey(
  database: string,
  columns: readonly TableColumn[],
  key: readonly string[],
  isEmpty: boolean,
): KeyPlan {
  if (!isEmpty) return refuseKey(database, columns, key, 'the table already has rows')
  const names = key.map((member) =>
    required(columns.find((column) => column.member === member)?.name, 'The column of a key field'),
  )
  return { names, columns: withKey(columns, key, 'enforced'), drift: [] }
}

/** Plans a table whose key is not enforced, and records the reason as drift. */
export function refuseKey(
  database: string,
  columns: readonly TableColumn[],
  key: readonly string[],
  reason: string,
): KeyPlan {
  return {
    names: null,
    columns: withKey(columns, key, 'refused'),
    drift: [`the key of ${database} (${key.join(', ')}) is not enforced: ${reason}`],
  }
}

export function enforcedKeyColumns(columns: readonly TableColumn[]): TableColumn[] {
  return columns.filter(({ key }) => key === 'enforced')
}

function withKey(
  columns: readonly TableColumn[],
  key: readonly string[],
  state: 'enforced' | 'refused',
): TableColumn[] {
  return columns.map((column) => (key.includes(column.member) ? { ...column, key: state } : column))
}

export function keyConstraintName(databaseId: number): string {
  return `${KEY_CONSTRAINT_PREFIX}${databaseId}`
}

export const KEY_CONSTRAINT_PREFIX = 'tidemark_key_'
