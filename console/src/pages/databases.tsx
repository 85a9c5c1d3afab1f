import { useQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import type { DatabaseDocument } from '../../../src/server/console/documents.ts'
import { get, path } from '../api.ts'
import { DataTable } from '../components/data-table.tsx'
import { EmptyState, QueryView } from '../components/query-states.tsx'
import { formatCount } from '../format.ts'

const NAMES_MAX = 6

/** Counting rows is expensive, so the interval is long. */
export function useDatabases() {
  return useQuery({
    queryKey: ['databases'],
    queryFn: ({ signal }) => get<{ data: DatabaseDocument[] }>('/api/databases', signal),
    refetchInterval: 15_000,
  })
}

export function DatabasesPage() {
  return (
    <>
      <h1>Databases</h1>
      <QueryView of={useDatabases()}>
        {({ data }) =>
          data.length === 0 ? (
            <EmptyState title="No databases yet">A database appears with the first cycle that writes to it.</EmptyState>
          ) : (
            <DataTable
              label="Databases"
              rows={data}
              keyOf={({ name }) => name}
              columns={[
                { title: 'Database', cell: ({ name }) => <Link href={path`/databases/${name}`}>{name}</Link> },
                { title: 'Rows', isNumber: true, cell: ({ rows }) => formatCount(rows) },
                { title: 'Table', cell: ({ table }) => <code>{table}</code> },
                {
                  title: 'Columns',
                  isWide: true,
                  cell: ({ columns }) => (
                    <span className="quiet">
                      {columns
                        .slice(0, NAMES_MAX)
                        .map(({ name }) => name)
                        .join(', ')}
                      {columns.length > NAMES_MAX && ` and ${columns.length - NAMES_MAX} more`}
                    </span>
                  ),
                },
              ]}
            />
          )
        }
      </QueryView>
    </>
  )
}
