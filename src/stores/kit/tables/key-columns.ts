import type { TableColumn } from './column.ts'

/** What a declared key asks of the columns of its members. */
export interface KeyPlan {
  /** To be made not null, and unique together, in this order; null when that is refused. */
  readonly names: readonly string[] | null
  readonly columns: readonly TableColumn[]
  readonly drift: readonly string[]
}

/** Whether a key is declared that is neither enforced nor refused yet. */
export function isKeyUndecided(columns: readonly TableColumn[], key: readonly string[]): boolean {
  return key.length > 0 && !columns.some((column) => column.key !== undefined)
}

/** The members of a key that have no column yet. */
export function keyMembersWithoutColumn(columns: readonly TableColumn[], key: readonly string[]): string[] {
  return key.filter((member) => (columns.find((column) => column.member === member)?.name ?? null) === null)
}

/** A key is enforced on an empty table or never: its rows may contradict it, and a large table would be locked for long. */
export function planKey(database: string, columns: readonly TableColumn[], key: readonly string[], isEmpty: boolean): KeyPlan {
  if (!isEmpty) return refuseKey(database, columns, key, 'the table has rows already')
  const names = key.map((member) => columns.find((column) => column.member === member)!.name!)
  return { names, columns: withKey(columns, key, 'enforced'), drift: [] }
}

export function refuseKey(database: string, columns: readonly TableColumn[], key: readonly string[], reason: string): KeyPlan {
  return { names: null, columns: withKey(columns, key, 'refused'), drift: [`the key of ${database} (${key.join(', ')}) is not enforced: ${reason}`] }
}

/** The columns whose key is enforced. */
export function enforcedKeyColumns(columns: readonly TableColumn[]): TableColumn[] {
  return columns.filter(({ key }) => key === 'enforced')
}

function withKey(columns: readonly TableColumn[], key: readonly string[], state: 'enforced' | 'refused'): TableColumn[] {
  return columns.map((column) => (key.includes(column.member) ? { ...column, key: state } : column))
}

/** The name of the unique index or constraint. */
export function keyConstraintName(databaseId: number): string {
  return `${KEY_CONSTRAINT_PREFIX}${databaseId}`
}

export const KEY_CONSTRAINT_PREFIX = 'tidemark_key_'
