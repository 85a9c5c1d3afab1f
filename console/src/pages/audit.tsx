import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import type {
  AuditChainDocument,
  AuditChainEntryDocument,
  AuditVerificationDocument,
} from '../../../src/server/console/documents.ts'
import { get, path } from '../api.ts'
import { DataTable } from '../components/data-table.tsx'
import { EmptyState, QueryView } from '../components/query-states.tsx'
import { Timestamp } from '../components/time.tsx'
import { formatCount, pluralize } from '../format.ts'

export function AuditPage() {
  const verification = useQuery({
    queryKey: ['verdict'],
    queryFn: ({ signal }) => get<{ data: AuditVerificationDocument }>('/console/api/audit/verdict', signal),
    staleTime: 60_000,
  })
  const auditLog = useInfiniteQuery({
    queryKey: ['audit'],
    queryFn: ({ pageParam, signal }) =>
      get<{ data: AuditChainDocument }>(
        `/console/api/audit?limit=50${pageParam === null ? '' : `&before=${pageParam}`}`,
        signal,
      ),
    initialPageParam: null as number | null,
    getNextPageParam: ({ data }) => (data.entries.length < 50 ? null : (data.entries.at(-1)?.id ?? null)),
  })
  return (
    <>
      <div className="title-bar">
        <div>
          <h1>Audit</h1>
          <p className="quiet">
            Every change to checkpoints, encryption keys and webhooks. Each entry is hash-chained to the previous one.
          </p>
        </div>
        <div className="verdict" role="status">
          {verification.data === undefined ? (
            <span className="tag">
              {verification.error === null ? 'Verifying the chain…' : 'The chain could not be verified'}
            </span>
          ) : (
            <AuditVerification verdict={verification.data.data} />
          )}
          <button
            type="button"
            className="small"
            disabled={verification.isFetching}
            onClick={() => void verification.refetch()}
          >
            Verify again
          </button>
        </div>
      </div>
      <QueryView of={auditLog}>
        {({ pages }) => {
          const entries = pages.flatMap(({ data }) => data.entries)
          return entries.length === 0 ? (
            <EmptyState title="No entries yet">The first complete cycle writes the first entry.</EmptyState>
          ) : (
            <>
              <AuditEntries entries={entries} />
              <p className="more">
                {formatCount(entries.length)} of {pluralize(pages[0]?.data.count ?? 0, 'entry', 'entries')}
                {auditLog.hasNextPage && (
                  <button
                    type="button"
                    disabled={auditLog.isFetchingNextPage}
                    onClick={() => void auditLog.fetchNextPage()}
                  >
                    Show older
                  </button>
                )}
              </p>
            </>
          )
        }}
      </QueryView>
    </>
  )
}

function AuditVerification({ verdict: { intact, entries, head, brokenAt } }: { verdict: AuditVerificationDocument }) {
  if (!intact)
    return (
      <span className="tag tag-bad">
        Broken at entry {brokenAt?.id}: {brokenAt?.why}
      </span>
    )
  return (
    <span className="tag tag-created" title={`head ${head}`}>
      ✓ Chain verified, {pluralize(entries, 'entry', 'entries')}
    </span>
  )
}

function AuditEntries({ entries }: { entries: readonly AuditChainEntryDocument[] }) {
  return (
    <DataTable
      label="Audit log, newest first"
      rows={entries}
      keyOf={({ id }) => id}
      columns={[
        { title: 'Entry', isNumber: true, cell: ({ id }) => id },
        { title: 'Time', cell: ({ at }) => <Timestamp at={at} /> },
        { title: 'Action', cell: ({ action }) => <span className="tag">{action}</span> },
        {
          title: 'Sync',
          cell: ({ worker, sync, version }) =>
            worker === null || sync === null ? (
              <span className="quiet">tenant</span>
            ) : (
              <>
                <Link href={path`/syncs/${worker}/${sync}`}>{sync}</Link> <span className="quiet">v{version}</span>
              </>
            ),
        },
        {
          title: 'Actor',
          cell: ({ actor, cycle }) => (
            <>
              {actor}
              {cycle !== null && <span className="quiet"> cycle {cycle}</span>}
            </>
          ),
        },
        { title: 'Reason', isWide: true, cell: ({ reason }) => reason || <span className="quiet">–</span> },
        { title: 'Hash', cell: ({ hash }) => <code title={hash}>{hash.slice(0, 8) || '–'}</code> },
      ]}
    />
  )
}
