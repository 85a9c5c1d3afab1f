import { useQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import type { RecordDocument } from '../../../src/server/console/documents.ts'
import { get, path } from '../api.ts'
import { Dialog } from '../components/dialog.tsx'
import { QueryView } from '../components/query-states.tsx'
import { formatKey } from '../format.ts'
import { FieldHistory } from './field-history.tsx'
import type { Cell } from './rows-table.tsx'
import type { Filter } from './view-state.ts'

/** The whole value of a cell, and its history. */
export function CellPanel({
  database,
  cell: { field, row },
  filter,
  onFilter,
  onClose,
}: {
  database: string
  cell: Cell
  /** The filter for the same value; null if there is none. */
  filter: Filter | null
  onFilter: (filter: Filter) => void
  onClose: () => void
}) {
  const record = useQuery({
    queryKey: ['record', database, row.key],
    queryFn: ({ signal }) =>
      get<{ data: RecordDocument }>(path`/console/api/databases/${database}/rows/${row.key}`, signal),
  })
  const value = row.record[field]
  const text = typeof value === 'string' ? value : value === undefined ? '–' : JSON.stringify(value, null, 2)
  return (
    <Dialog
      title={`${field} of ${formatKey(row.key)}`}
      onClose={onClose}
      actions={
        filter !== null && (
          <button
            type="button"
            className="primary"
            onClick={() => {
              onFilter(filter)
              onClose()
            }}
          >
            Filter by this value
          </button>
        )
      }
    >
      <pre className="panel-value" tabIndex={0} aria-label="Value">
        <code>{text}</code>
      </pre>
      <h3>History of {field}</h3>
      <QueryView of={record} lines={3}>
        {({ data }) => <FieldHistory record={data} field={field} />}
      </QueryView>
      <p>
        <Link href={path`/databases/${database}/${row.key}`}>Open the record</Link>
      </p>
    </Dialog>
  )
}
