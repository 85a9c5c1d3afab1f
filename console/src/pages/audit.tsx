import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import type { AuditChainDocument, AuditChainEntryDocument, AuditVerificationDocument } from '../../../src/server/console/documents.ts'
import { get, path } from '../api.ts'
import { DataTable } from '../components/data-table.tsx'
import { EmptyState, QueryView } from '../components/query-states.tsx'
import { Timestamp } from '../components/time.tsx'
import { formatCount, pluralize } from '../format.ts'

export function AuditPage() {
  const verdict = useQuery({ queryKey: ['verdict'], queryFn: ({ signal }) => get<{ data: AuditVerificationDocument }>('/console/api/audit/verdict', signal), staleTime: 60_000 })
  const trail = useInfiniteQuery({
    queryKey: ['audit'],
    queryFn: ({ pageParam, signal }) => get<{ data: AuditChainDocument }>(`/console/api/audit?limit=50${pageParam === null ? '' : `&before=${pageParam}`}`, signal),
    initialPageParam: null as number | null, getNextPageParam: ({ data }) => (data.entries.length < 50 ? null : data.entries.at(-1)!.id),
  })
  return (
    <>
      <div className="title-bar">
        <div><h1>Audit</h1><p className="quiet">Every move of a checkpoint, of the keys that seal them and of what a webhook is sent, each chained to the one before.</p></div>
        <div className="verdict" role="status">
          {verdict.data === undefined ? <span className="tag">{verdict.error === null ? 'Following the chain…' : 'The chain could not be followed'}</span> : <AuditVerification verdict={verdict.data.data} />}
          <button type="button" className="small" disabled={verdict.isFetching} onClick={() => void verdict.refetch()}>Verify again</button>
        </div>
      </div>
      <QueryView of={trail}>
        {({ pages }) => {
          const entries = pages.flatMap(({ data }) => data.entries)
          return entries.length === 0 ? <EmptyState title="Nothing has been done yet">The first complete cycle writes the first entry.</EmptyState> : (
            <>
              <AuditEntries entries={entries} />
              <p className="more">{formatCount(entries.length)} of {pluralize(pages[0]!.data.count, 'entry', 'entries')}{trail.hasNextPage && <button type="button" disabled={trail.isFetchingNextPage} onClick={() => void trail.fetchNextPage()}>Show older</button>}</p>
            </>
          )
        }}
      </QueryView>
    </>
  )
}

function AuditVerification({ verdict: { intact, entries, head, brokenAt } }: { verdict: AuditVerificationDocument }) {
  if (!intact) return <span className="tag tag-bad">Broken at entry {brokenAt?.id}: {brokenAt?.why}</span>
  return <span className="tag tag-created" title={`head ${head}`}>✓ Chain verified, {pluralize(entries, 'entry', 'entries')}</span>
}

function AuditEntries({ entries }: { entries: readonly AuditChainEntryDocument[] }) {
  return (
    <DataTable
      label="Audit trail, newest first" rows={entries} keyOf={({ id }) => id}
      columns={[
        { title: 'Entry', isNumber: true, cell: ({ id }) => id },
        { title: 'When', cell: ({ at }) => <Timestamp at={at} /> },
        { title: 'What', cell: ({ action }) => <span className="tag">{action}</span> },
        { title: 'To', cell: ({ worker, sync, version }) => (worker === null || sync === null ? <span className="quiet">the tenant</span> : <><Link href={path`/syncs/${worker}/${sync}`}>{sync}</Link> <span className="quiet">v{version}</span></>) },
        { title: 'By', cell: ({ actor, cycle }) => <>{actor}{cycle !== null && <span className="quiet"> cycle {cycle}</span>}</> },
        { title: 'Reason', isWide: true, cell: ({ reason }) => reason || <span className="quiet">–</span> },
        { title: 'Link', cell: ({ hash }) => <code title={hash}>{hash.slice(0, 8) || '–'}</code> },
      ]}
    />
  )
}
