import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import type { ColumnsDocument, DatabaseDocument } from '../../../src/server/console/documents.ts'
import { get, path } from '../api.ts'
import { EmptyState, ErrorMessage, Loading, QueryView } from '../components/query-states.tsx'
import { CellPanel } from '../explorer/cell-panel.tsx'
import { ColumnPanel } from '../explorer/column-panel.tsx'
import { testsOf, toColumns, type ExplorerColumn } from '../explorer/columns.ts'
import { useRowPages, type PagesState, type RowPages } from '../explorer/row-pages.ts'
import { RowsTable, type Cell } from '../explorer/rows-table.tsx'
import { SqlPanel } from '../explorer/sql-panel.tsx'
import { AsOfControl, ExportMenu, FilterChips, SearchField } from '../explorer/toolbar.tsx'
import { effectiveOrder, useView, type Filter, type View } from '../explorer/view-state.ts'
import { Timestamp } from '../components/time.tsx'
import { ExactNumber } from '../exact-json.ts'
import { formatCount, pluralize } from '../format.ts'
import { useDatabases } from './databases.tsx'
import { WhyNot } from './why-not.tsx'

export function DatabasePage({ name }: { name: string }) {
  const databases = useDatabases()
  return (
    <>
      <nav className="crumbs" aria-label="Breadcrumbs">
        <Link href="/databases">Databases</Link>
      </nav>
      <QueryView of={databases}>
        {({ data }) => {
          const database = data.find((one) => one.name === name)
          return database === undefined ? (
            <EmptyState title={`Database ${name} not found`}>
              <Link href="/databases">Show all databases</Link>
            </EmptyState>
          ) : (
            <Explorer database={database} />
          )
        }}
      </QueryView>
    </>
  )
}

function Explorer({ database }: { database: DatabaseDocument }) {
  const [view, change] = useView()
  const described = useQuery({
    queryKey: ['columns', database.name, database.columns.length],
    queryFn: ({ signal }) =>
      get<{ data: ColumnsDocument }>(path`/console/api/databases/${database.name}/columns`, signal),
    placeholderData: (before) => before,
  })
  return (
    <>
      <div className="title-bar">
        <div>
          <h1>{database.name}</h1>
          <p className="quiet">
            {pluralize(database.rows, 'row')} · {pluralize(database.columns.length, 'column')}
          </p>
        </div>
        <div className="tabs" role="group" aria-label="View">
          {(['rows', 'sql'] as const).map((tab) => (
            <button key={tab} type="button" aria-pressed={view.tab === tab} onClick={() => change({ tab })}>
              {tab === 'rows' ? 'Rows' : 'SQL'}
            </button>
          ))}
        </div>
      </div>
      <QueryView of={described} lines={12}>
        {({ data }) =>
          view.tab === 'sql' ? (
            <SqlPanel
              database={database.name}
              table={data.table}
              columns={data.columns.flatMap(({ column }) => column ?? [])}
              canQuery={data.canQuery}
              view={view}
              onChange={change}
            />
          ) : (
            <Rows database={database} described={data} view={view} onChange={change} />
          )
        }
      </QueryView>
    </>
  )
}

function Rows({
  database,
  described,
  view,
  onChange,
}: {
  database: DatabaseDocument
  described: ColumnsDocument
  view: View
  onChange: (change: Partial<View>) => void
}) {
  const [version, setVersion] = useState(0)
  const [column, setColumn] = useState<ExplorerColumn | null>(null)
  const [cell, setCell] = useState<Cell | null>(null)
  const { pages, state } = useRowPages(database.name, view, version)
  const columns = toColumns(described)
  const addFilter = (filter: Filter): void => onChange({ filters: [...view.filters, filter] })
  return (
    <section aria-label="Records" className="explorer">
      <div className="bar explorer-bar">
        <SearchField value={view.search} onSearch={(search) => onChange({ search })} />
        {described.canSearch && (
          <>
            <AsOfControl asOf={view.asOf} onChange={(asOf) => onChange({ asOf })} />
            <ExportMenu database={database.name} view={view} />
          </>
        )}
      </div>
      <FilterChips view={view} onChange={onChange} />
      {state.error !== null && <ErrorMessage error={state.error} onRetry={() => void pages.load()} />}
      {state.pages.length === 0 && state.isLoading ? (
        <Loading lines={12} />
      ) : state.count === 0 && state.error === null ? (
        <NoRows database={database} view={view} state={state} />
      ) : state.count === 0 ? null : (
        <RowsTable
          database={database.name}
          columns={columns}
          order={effectiveOrder(view)}
          pages={pages}
          state={state}
          canSort={described.canSearch}
          onOrder={(order) => onChange({ order })}
          onColumn={setColumn}
          onCell={setCell}
        />
      )}
      <StatusLine
        database={database}
        view={view}
        pages={pages}
        state={state}
        onReload={() => setVersion(version + 1)}
      />
      {column !== null && (
        <ColumnPanel
          database={database.name}
          column={column}
          view={view}
          onChange={onChange}
          onClose={() => setColumn(null)}
        />
      )}
      {cell !== null && (
        <CellPanel
          database={database.name}
          cell={cell}
          filter={filterOf(cell, columns)}
          onFilter={addFilter}
          onClose={() => setCell(null)}
        />
      )}
    </section>
  )
}

/** The filter for the value of a cell; null if its type has none. */
function filterOf({ field, row }: Cell, columns: readonly ExplorerColumn[]): Filter | null {
  const column = columns.find((one) => one.field === field)
  const value = row.record[field]
  if (column === undefined || !column.isUsable) return null
  if (value === null || value === undefined) return [field, 'empty']
  if (typeof value === 'object' && !(value instanceof ExactNumber)) return null
  return testsOf(column.type).includes('equals') ? [field, 'equals', String(value)] : null
}

function NoRows({ database, view, state }: { database: DatabaseDocument; view: View; state: PagesState }) {
  const { search, filters, asOf } = view
  if (search === '' && filters.length === 0)
    return (
      <EmptyState title="No rows">
        {asOf === '' ? 'Rows appear with the next cycle.' : 'There were none yet.'}
      </EmptyState>
    )
  if (state.next !== null)
    return (
      <EmptyState title={`No match for “${search}” in ${formatCount(state.scanned)} rows yet`}>
        <SearchedText view={view} database={database} state={state} />
      </EmptyState>
    )
  const isWhole = filters.length === 0 && asOf === '' && search !== ''
  return (
    <>
      <EmptyState title={search === '' ? 'No row matches the filters' : `No row contains “${search}”`}>
        <SearchedText view={view} database={database} state={state} />
      </EmptyState>
      {isWhole && (
        <div className="ask">
          <WhyNot key={search} database={database.name} id={search} />
        </div>
      )}
    </>
  )
}

/** Exactly what has been looked at: absence is claimed only after the last row. */
function SearchedText({ database, view, state }: { database: DatabaseDocument; view: View; state: PagesState }) {
  const { search, filters, asOf } = view
  if (search === '') return <>All rows were filtered.</>
  const among = filters.length > 0 ? ' that match the filters' : ''
  const where = 'the key and every column except booleans and bytes'
  return state.next === null ? (
    <>
      Searched {where} of all {formatCount(state.scanned)} rows{among}
      {asOf !== '' && ' of that time'}.
    </>
  ) : (
    <>
      Searched {where} of {view.order === '' ? 'the newest ' : 'the first '}
      {formatCount(state.scanned)}
      {filters.length === 0 && asOf === '' && ` of ${formatCount(database.rows)}`} rows{among}.
    </>
  )
}

/** A small table needs no index. */
const ADVICE_ROWS_MIN = 10_000

function StatusLine({
  database,
  view,
  pages,
  state,
  onReload,
}: {
  database: DatabaseDocument
  view: View
  pages: RowPages
  state: PagesState
  onReload: () => void
}) {
  const { search, filters, asOf } = view
  const isWhole = search === '' && filters.length === 0 && asOf === ''
  const { count, next, scan, isPaused, isLoading } = state
  return (
    <>
      <p className="more" role="status">
        <span>
          {isLoading && count > 0
            ? 'Loading…'
            : isWhole
              ? `${formatCount(count)} of ${pluralize(Math.max(database.rows, count), 'row')} loaded`
              : `${pluralize(count, search === '' ? 'row' : 'match', search === '' ? undefined : 'matches')}${next === null ? '' : ' so far'}. `}
          {count > 0 && search !== '' && <SearchedText database={database} view={view} state={state} />}
          {asOf !== '' && (
            <>
              {' '}
              As of <Timestamp at={asOf} />.
            </>
          )}
        </span>
        {isPaused && (
          <button type="button" disabled={isLoading} onClick={() => void pages.load()}>
            {isLoading ? 'Searching…' : 'Search further'}
          </button>
        )}
        <button type="button" className="small reload" onClick={onReload}>
          Reload
        </button>
      </p>
      {scan !== null && database.rows >= ADVICE_ROWS_MIN && (
        <p className="quiet scan-note">
          This view reads every row, for up to 5 s per page.
          {scan.index !== null && (
            <>
              {' '}
              An index makes it fast: <code className="breakable">{scan.index}</code>
            </>
          )}
        </p>
      )}
    </>
  )
}
