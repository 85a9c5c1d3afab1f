import { useInfiniteQuery } from '@tanstack/react-query'
import { useDeferredValue, useEffect, useState } from 'react'
import { Link } from 'wouter'
import type { DatabaseDocument, RowDocument, RowsDocument } from '../../../src/server/console/documents.ts'
import { get, path } from '../api.ts'
import { Command } from '../components/command.tsx'
import { EmptyState, ErrorMessage, Loading, QueryView } from '../components/query-states.tsx'
import { Timestamp } from '../components/time.tsx'
import { Value } from '../components/value.tsx'
import { formatCount, pluralize, formatKey } from '../format.ts'
import { useDatabases } from './databases.tsx'
import { WhyNot } from './why-not.tsx'

export function DatabasePage({ name }: { name: string }) {
  const databases = useDatabases()
  const [text, setText] = useState('')
  const search = useDeferredValue(text.trim())
  return (
    <>
      <nav className="crumbs" aria-label="Breadcrumbs">
        <Link href="/databases">Databases</Link>
      </nav>
      <QueryView of={databases}>
        {({ data }) => {
          const database = data.find((one) => one.name === name)
          if (database === undefined)
            return (
              <EmptyState title={`Database ${name} not found`}>
                <Link href="/databases">Show all databases</Link>
              </EmptyState>
            )
          return (
            <>
              <div className="title-bar">
                <div>
                  <h1>{name}</h1>
                  <p className="quiet">
                    {pluralize(database.rows, 'row')} · {pluralize(database.columns.length, 'column')}
                  </p>
                </div>
                <input
                  type="search"
                  placeholder="Search keys and records  /"
                  aria-label="Search keys and records"
                  value={text}
                  onChange={(event) => setText(event.target.value)}
                />
              </div>
              <Records database={database} search={search} />
              <section aria-labelledby="sql">
                <h2 id="sql">Query with SQL</h2>
                <p className="quiet">A table with typed columns in your own store. On this machine:</p>
                <Command label="Command" text={`npx tidemark query "select * from ${database.table} limit 20"`} />
                <Command label="SQL" text={buildSampleSql(database)} />
              </section>
            </>
          )
        }}
      </QueryView>
    </>
  )
}

function buildSampleSql({ table, columns }: DatabaseDocument): string {
  const names = columns
    .slice(0, 6)
    .map(({ name }) => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`))
  return `select ${names.join(', ') || '*'}\nfrom ${table}\nlimit 20;`
}

function Records({ database, search }: { database: DatabaseDocument; search: string }) {
  const rows = useInfiniteQuery({
    queryKey: ['rows', database.name, search],
    queryFn: ({ pageParam, signal }) =>
      get<RowsDocument>(
        `${path`/console/api/databases/${database.name}/rows`}?${new URLSearchParams({ ...(search !== '' && { search }), ...(pageParam !== null && { after: pageParam }) })}`,
        signal,
      ),
    initialPageParam: null as string | null,
    getNextPageParam: ({ next }) => next,
    placeholderData: (before) => before,
  })
  const isEmpty = rows.data?.pages.every(({ data }) => data.length === 0) === true
  const { hasNextPage, isFetching, isError, fetchNextPage } = rows
  // One response searches a bounded number of rows. An empty one does not mean that nothing matches, so the search
  // continues to the first match or the end.
  useEffect(() => {
    if (search !== '' && isEmpty && hasNextPage && !isFetching && !isError) void fetchNextPage()
  }, [search, isEmpty, hasNextPage, isFetching, isError, fetchNextPage])
  if (rows.error !== null && rows.data === undefined)
    return <ErrorMessage error={rows.error} onRetry={() => void rows.refetch()} />
  if (rows.data === undefined) return <Loading lines={10} />
  const found = rows.data.pages.flatMap(({ data }) => data)
  const scanned = rows.data.pages.reduce((sum, page) => sum + page.scanned, 0)
  return (
    <section aria-label="Records" className={rows.isPlaceholderData ? 'is-waiting' : ''}>
      {found.length === 0 ? (
        <EmptyState
          title={
            search === ''
              ? 'No rows'
              : rows.hasNextPage
                ? `No match for “${search}” yet`
                : `No row contains “${search}”`
          }
        >
          {search === '' ? (
            'Rows appear with the next cycle.'
          ) : (
            <>
              Searched {formatCount(scanned)} of {pluralize(database.rows, 'row')}
              {rows.hasNextPage ? '…' : '. If this is a key, you can check why it is missing.'}
            </>
          )}
        </EmptyState>
      ) : (
        <RecordTable database={database} rows={found} />
      )}
      {found.length === 0 && search !== '' && !rows.hasNextPage && !rows.isPlaceholderData && (
        <div className="ask">
          <WhyNot key={search} database={database.name} id={search} />
        </div>
      )}
      <p className="more" role="status">
        {search === ''
          ? `${formatCount(found.length)} of ${pluralize(database.rows, 'row')}`
          : `${pluralize(found.length, 'match', 'matches')} in ${formatCount(scanned)} of ${pluralize(database.rows, 'row')}`}
        {rows.hasNextPage && (
          <button type="button" disabled={rows.isFetchingNextPage} onClick={() => void rows.fetchNextPage()}>
            {search === '' ? 'Show more' : 'Search further'}
          </button>
        )}
      </p>
    </section>
  )
}

const NUMERIC = new Set(['integer', 'number', 'bigint'])

function isNumeric(kinds: readonly string[]): boolean {
  return kinds.length > 0 && kinds.every((kind) => NUMERIC.has(kind))
}

function RecordTable({ database, rows }: { database: DatabaseDocument; rows: readonly RowDocument[] }) {
  return (
    <div className="scroll" role="region" aria-label="Records" tabIndex={0}>
      <table className="records">
        <thead>
          <tr>
            <th scope="col">key</th>
            {database.columns.map(({ name, kinds }) => (
              <th key={name} scope="col" className={isNumeric(kinds) ? 'number' : ''} title={name}>
                {name} <span className="kind">{kinds.join(' | ') || 'null'}</span>
              </th>
            ))}
            <th scope="col">changed</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, record, committedAt }) => (
            <tr key={key}>
              <th scope="row">
                <Link href={path`/databases/${database.name}/${key}`}>{formatKey(key)}</Link>
              </th>
              {database.columns.map(({ name, kinds }) => (
                <td key={name} className={isNumeric(kinds) ? 'number' : ''}>
                  <Value value={record[name]} />
                </td>
              ))}
              <td className="quiet">
                <Timestamp at={committedAt} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
