import type { JsonValue } from '../../../contract/index.ts'
import type { TableColumn } from './column.ts'

/** Longer records are returned as text, so that limits which depend on the text of a record are checked on it. */
export const VALUES_TEXT_MAX = 65_536

/** The value of a field whose column is null, in a row without `_extra`. */
export function valueOfNull({ none, since }: TableColumn, sequence: number): JsonValue | undefined {
  if (none === 'absent' || sequence < since) return undefined
  return none === 'null' ? null : ''
}
