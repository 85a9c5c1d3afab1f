import type { DestinationChange, DestinationMode } from '../../contract/index.ts'
import type { ScalarType, TableColumn } from '../../stores/kit/tables/column.ts'
import type { ColumnValue, EncodedRecord } from '../../stores/kit/tables/encode-record.ts'

/** The columns of a table that do not come from the record. `_extra` holds what its other columns cannot hold exactly. */
export const SYSTEM_COLUMNS: Record<
  DestinationMode,
  ReadonlyArray<{ readonly name: string; readonly type: ScalarType }>
> = {
  mirror: [
    { name: '_key', type: 'text' },
    { name: '_sequence', type: 'bigint' },
    { name: '_committed_at', type: 'timestamp' },
    { name: '_extra', type: 'json' },
  ],
  append: [
    { name: '_sequence', type: 'bigint' },
    { name: '_key', type: 'text' },
    { name: '_action', type: 'text' },
    { name: '_committed_at', type: 'timestamp' },
    { name: '_extra', type: 'json' },
  ],
  history: [
    { name: '_key', type: 'text' },
    { name: '_sequence', type: 'bigint' },
    { name: '_valid_from', type: 'timestamp' },
    { name: '_valid_to', type: 'timestamp' },
    { name: '_is_current', type: 'boolean' },
    { name: '_extra', type: 'json' },
  ],
}

export const PRIMARY_KEYS: Record<DestinationMode, readonly string[]> = {
  mirror: ['_key'],
  append: ['_sequence'],
  history: ['_key', '_sequence'],
}

/** A batch as rows of its table. */
export interface TableRows {
  /** Values of the system columns, then of the columns that have a name. */
  readonly rows: ColumnValue[][]
  /** Keys to delete from a mirror. */
  readonly deletedKeys: readonly string[]
  /** Keys of a history whose current version ends, with the time in ms. */
  readonly endedKeys: ReadonlyArray<readonly [key: string, at: number]>
}

/** Turns changes into rows. In a history, a version ends when the next one of its key begins. */
export function toTableRows(
  mode: DestinationMode,
  changes: readonly DestinationChange[],
  columns: readonly TableColumn[],
  encode: (change: DestinationChange) => EncodedRecord,
): TableRows {
  const rows: ColumnValue[][] = []
  const deletedKeys: string[] = []
  const ended = new Map<string, number>()
  const open = new Map<string, ColumnValue[]>()
  const values = (change: DestinationChange): { extra: ColumnValue; cells: ColumnValue[] } => {
    if (change.record === null)
      return { extra: null, cells: columns.flatMap(({ name }) => (name === null ? [] : [null])) }
    const encoded = encode(change)
    return { extra: encoded.extra, cells: encoded.values.filter((_, at) => columns[at]?.name !== null) }
  }
  for (const change of changes) {
    const { key, sequence, action, committedAt } = change
    switch (mode) {
      case 'mirror': {
        if (change.record === null) deletedKeys.push(key)
        else {
          const { extra, cells } = values(change)
          rows.push([key, sequence, committedAt, extra, ...cells])
        }
        break
      }
      case 'append': {
        const { extra, cells } = values(change)
        rows.push([sequence, key, action, committedAt, extra, ...cells])
        break
      }
      case 'history': {
        const before = open.get(key)
        if (before === undefined) {
          if (!ended.has(key)) ended.set(key, committedAt)
        } else [before[VALID_TO], before[IS_CURRENT]] = [committedAt, false]
        open.delete(key)
        if (change.record === null) break
        const { extra, cells } = values(change)
        const row: ColumnValue[] = [key, sequence, committedAt, null, true, extra, ...cells]
        open.set(key, row)
        rows.push(row)
        break
      }
      default:
        mode satisfies never
    }
  }
  return { rows, deletedKeys, endedKeys: [...ended] }
}

const VALID_TO = SYSTEM_COLUMNS.history.findIndex(({ name }) => name === '_valid_to')
const IS_CURRENT = SYSTEM_COLUMNS.history.findIndex(({ name }) => name === '_is_current')
