import { useQuery } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import type { StatisticsDocument } from '../../../src/server/console/documents.ts'
import { get, path } from '../api.ts'
import { Dialog } from '../components/dialog.tsx'
import { QueryView } from '../components/query-states.tsx'
import { formatCount, pluralize } from '../format.ts'
import { TEST_NAMES, testsOf, type ExplorerColumn } from './columns.ts'
import { toApiQuery, type Filter, type FilterTest, type View } from './view-state.ts'

/** Sorts, filters and summarises by one column. */
export function ColumnPanel({
  database,
  column,
  view,
  onChange,
  onClose,
}: {
  database: string
  column: ExplorerColumn
  view: View
  onChange: (change: Partial<View>) => void
  onClose: () => void
}) {
  const { field, type } = column
  const addFilter = (filter: Filter): void => {
    onChange({ filters: [...view.filters.filter((other) => JSON.stringify(other) !== JSON.stringify(filter)), filter] })
    onClose()
  }
  return (
    <Dialog title={field} onClose={onClose}>
      <p className="quiet panel-type">{type}</p>
      <div className="panel-sort">
        {[`field:${field}`, `-field:${field}`].map((order, at) => (
          <button
            key={order}
            type="button"
            aria-pressed={view.order === order}
            onClick={() => {
              onChange({ order: view.order === order ? '' : order })
              onClose()
            }}
          >
            {at === 0 ? 'Sort ascending ↑' : 'Sort descending ↓'}
          </button>
        ))}
      </div>
      <FilterForm column={column} onAdd={addFilter} />
      <Statistics database={database} column={column} view={view} onAdd={addFilter} />
    </Dialog>
  )
}

const INPUT_TYPES: Readonly<Record<string, string>> = {
  date: 'date',
  time: 'time',
  timestamp: 'datetime-local',
  datetime: 'datetime-local',
}

function FilterForm({ column, onAdd }: { column: ExplorerColumn; onAdd: (filter: Filter) => void }) {
  const { field, type } = column
  const tests = testsOf(type)
  const [test, setTest] = useState<FilterTest>(tests[0] ?? 'empty')
  const [value, setValue] = useState(type === 'boolean' ? 'true' : '')
  const hasValue = test !== 'empty' && test !== 'present'
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    onAdd(hasValue ? [field, test, toFilterValue(type, value)] : [field, test])
  }
  return (
    <form className="panel-filter" aria-label={`Filter ${field}`} onSubmit={submit}>
      <select aria-label="Condition" value={test} onChange={(event) => setTest(event.target.value as FilterTest)}>
        {tests.map((name) => (
          <option key={name} value={name}>
            {TEST_NAMES[name]}
          </option>
        ))}
      </select>
      {hasValue &&
        (type === 'boolean' ? (
          <select aria-label="Value" value={value} onChange={(event) => setValue(event.target.value)}>
            <option>true</option>
            <option>false</option>
          </select>
        ) : (
          <input
            aria-label="Value"
            type={INPUT_TYPES[type] ?? 'text'}
            step={type === 'date' ? undefined : 1}
            spellCheck={false}
            autoComplete="off"
            required
            value={value}
            onChange={(event) => setValue(event.target.value)}
          />
        ))}
      <button type="submit" className="primary">
        Add filter
      </button>
    </form>
  )
}

/** Instants are entered in the local time zone. */
function toFilterValue(type: string, value: string): string {
  if (type === 'timestamp') return new Date(value).toISOString()
  return type === 'datetime' && value.length === 16 ? `${value}:00` : value.trim()
}

function Statistics({
  database,
  column: { field, type },
  view,
  onAdd,
}: {
  database: string
  column: ExplorerColumn
  view: View
  onAdd: (filter: Filter) => void
}) {
  const query = toApiQuery(view)
  query.set('field', field)
  const statistics = useQuery({
    queryKey: ['statistics', database, query.toString()],
    queryFn: ({ signal }) =>
      get<{ data: StatisticsDocument }>(`${path`/console/api/databases/${database}/statistics`}?${query}`, signal),
  })
  const canEqual = testsOf(type).includes('equals') && type !== 'timestamp' && type !== 'datetime'
  return (
    <section className="panel-statistics" aria-label="Statistics">
      <QueryView of={statistics} lines={5}>
        {({ data }) => (
          <>
            <p className="quiet">
              {data.hasMore
                ? `Of the newest ${formatCount(data.scanned)} rows of this view; it has more.`
                : `Of all ${pluralize(data.scanned, 'row')} of this view.`}
            </p>
            <dl className="panel-facts">
              <div>
                <dt>empty</dt>
                <dd>
                  {formatShare(data.empty, data.scanned)} <span className="quiet">{formatCount(data.empty)}</span>
                </dd>
              </div>
              <div>
                <dt>distinct</dt>
                <dd>
                  {data.hasMore && 'at least '}
                  {formatCount(data.distinct)}
                </dd>
              </div>
              <div>
                <dt>smallest</dt>
                <dd className="clip" title={data.min ?? ''}>
                  {data.min ?? '–'}
                </dd>
              </div>
              <div>
                <dt>largest</dt>
                <dd className="clip" title={data.max ?? ''}>
                  {data.max ?? '–'}
                </dd>
              </div>
            </dl>
            <ol className="panel-top" aria-label="Most frequent values">
              {data.top.map(({ value, rows }) => (
                <li key={value}>
                  <span className="panel-bar" style={{ width: `${(100 * rows) / Math.max(1, data.scanned)}%` }} />
                  {canEqual ? (
                    <button
                      type="button"
                      className="clip"
                      title={value}
                      onClick={() => onAdd([field, 'equals', value])}
                    >
                      {value === '' ? '""' : value}
                    </button>
                  ) : (
                    <span className="clip" title={value}>
                      {value}
                    </span>
                  )}
                  <span className="quiet">
                    {formatCount(rows)} · {formatShare(rows, data.scanned)}
                  </span>
                </li>
              ))}
            </ol>
          </>
        )}
      </QueryView>
    </section>
  )
}

function formatShare(part: number, whole: number): string {
  if (whole === 0) return '0 %'
  const percent = (100 * part) / whole
  return `${percent > 0 && percent < 0.1 ? '< 0.1' : percent.toFixed(percent < 10 ? 1 : 0)} %`
}
