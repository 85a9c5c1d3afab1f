import type { DestinationChange, DestinationMode } from '../../contract/index.ts'
import type { ScalarType, TableColumn } from '../../stores/kit/tables/column.ts'
import type { ColumnValue, EncodedRecord } from '../../stores/kit/tables/encode-record.ts'
import type { TableValues } from './sql-tables.ts'

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
  readonly rows: TableValues
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
  const ended = new Map<string, number>()
  const open = new Map<string, ColumnValue[]>()
  const isEveryColumnNamed = columns.every(({ name }) => name !== null)
  const values = (change: DestinationChange): { extra: ColumnValue; cells: ColumnValue[] } => {
    if (isDelete(change)) return { extra: null, cells: columns.flatMap(({ name }) => (name === null ? [] : [null])) }
    const encoded = encode(change)
    const cells = isEveryColumnNamed ? encoded.values : encoded.values.filter((_, at) => columns[at]?.name !== null)
    return { extra: encoded.extra, cells }
  }
  if (mode === 'mirror')
    return {
      rows: new EncodedRows(
        changes.filter((change) => !isDelete(change)),
        (change) => {
          const { extra, cells } = values(change)
          return [change.key, change.sequence, change.committedAt, extra, ...cells]
        },
      ),
      deletedKeys: changes.filter(isDelete).map(({ key }) => key),
      endedKeys: [],
    }
  for (const change of changes) {
    const { key, sequence, action, committedAt } = change
    switch (mode) {
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
        if (isDelete(change)) break
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
  return { rows, deletedKeys: [], endedKeys: [...ended] }
}

/** Rows that are encoded as they are written: those of a whole batch would outlive a collection. */
class EncodedRows implements TableValues {
  readonly #changes: readonly DestinationChange[]
  readonly #encode: (change: DestinationChange) => ColumnValue[]

  constructor(changes: readonly DestinationChange[], encode: (change: DestinationChange) => ColumnValue[]) {
    this.#changes = changes
    this.#encode = encode
  }

  get length(): number {
    return this.#changes.length
  }

  *[Symbol.iterator](): Generator<ColumnValue[]> {
    for (const change of this.#changes) yield this.#encode(change)
  }
}

export function isDelete({ action }: DestinationChange): boolean {
  return action === 'deleted'
}

const VALID_TO = SYSTEM_COLUMNS.history.findIndex(({ name }) => name === '_valid_to')
const IS_CURRENT = SYSTEM_COLUMNS.history.findIndex(({ name }) => name === '_is_current')
