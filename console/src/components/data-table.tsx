import type { ReactNode } from 'react'

export interface TableColumn<Row> {
  readonly title: string
  readonly cell: (row: Row) => ReactNode
  readonly isNumber?: boolean
  /** Takes the remaining width. */
  readonly isWide?: boolean
}

/** On narrow screens each row becomes a card with the titles beside the values. */
export function DataTable<Row>({
  label,
  columns,
  rows,
  keyOf,
}: {
  label: string
  columns: readonly TableColumn<Row>[]
  rows: readonly Row[]
  keyOf: (row: Row) => string | number
}) {
  return (
    <table className="data-table" aria-label={label}>
      <thead>
        <tr>
          {columns.map(({ title, isNumber, isWide }) => (
            <th key={title} scope="col" className={`${isNumber ? 'number' : ''}${isWide ? ' wide' : ''}`}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            {columns.map(({ title, cell, isNumber }) => (
              <td key={title} className={isNumber ? 'number' : ''} data-title={title}>
                {cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}
