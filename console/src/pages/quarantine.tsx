import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import type { QuarantineDocument } from '../../../src/server/console/documents.ts'
import { get, path, post } from '../api.ts'
import { DataTable } from '../components/data-table.tsx'
import { EmptyState, QueryView } from '../components/query-states.tsx'
import { Timestamp } from '../components/time.tsx'
import { pluralize } from '../format.ts'
import { useSession } from '../session.tsx'

export function QuarantinePage() {
  const [text, setText] = useState('')
  const quarantine = useQuery({
    queryKey: ['quarantine'],
    queryFn: ({ signal }) => get<{ data: QuarantineDocument[] }>('/api/quarantine?limit=200', signal),
    refetchInterval: 10_000,
  })
  const wanted = text.trim().toLowerCase()
  return (
    <>
      <div className="title-bar">
        <div>
          <h1>Quarantine</h1>
          <p className="quiet">Records that failed validation, with the reason. All other records were written.</p>
        </div>
        {(quarantine.data?.data.length ?? 0) > 0 && (
          <input
            type="search"
            placeholder="Search  /"
            aria-label="Search the quarantine"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        )}
      </div>
      <QueryView of={quarantine}>
        {({ data }) =>
          data.length === 0 ? (
            <EmptyState title="No quarantined records">All records passed validation.</EmptyState>
          ) : (
            <>
              <ReplayList entries={data} />
              <DataTable
                label="Quarantine, newest first"
                keyOf={({ id }) => id}
                rows={data.filter((entry) => wanted === '' || JSON.stringify(entry).toLowerCase().includes(wanted))}
                columns={[
                  { title: 'Time', cell: ({ at }) => <Timestamp at={at} /> },
                  {
                    title: 'Sync',
                    cell: ({ worker, sync, cycle, page }) => (
                      <>
                        <Link href={path`/syncs/${worker}/${sync}`}>{sync}</Link>{' '}
                        <span className="quiet">
                          cycle {cycle}, page {page}
                        </span>
                      </>
                    ),
                  },
                  { title: 'Database', cell: ({ database }) => database },
                  { title: 'Key', cell: ({ key }) => key ?? <span className="quiet">none</span> },
                  {
                    title: 'Reason',
                    cell: ({ code, message }) => (
                      <>
                        <span className="bad">{code}</span> {message}
                      </>
                    ),
                  },
                  {
                    title: 'Record',
                    isWide: true,
                    cell: ({ text: record }) => (
                      <pre className="state" tabIndex={0} aria-label="Record">
                        <code>{record.slice(0, 2_000)}</code>
                      </pre>
                    ),
                  },
                ]}
              />
            </>
          )
        }
      </QueryView>
    </>
  )
}

/** A replay covers all quarantined records of one sync. */
function ReplayList({ entries }: { entries: readonly QuarantineDocument[] }) {
  const syncs = new Map<string, { worker: string; sync: string; count: number }>()
  for (const { worker, sync } of entries) {
    const name = `${worker}/${sync}`
    syncs.set(name, { worker, sync, count: (syncs.get(name)?.count ?? 0) + 1 })
  }
  const sorted = [...syncs].toSorted(([a], [b]) => (a < b ? -1 : 1))
  return (
    <ul className="replays">
      {sorted.map(([name, group]) => (
        <ReplayItem key={name} {...group} />
      ))}
    </ul>
  )
}

type ReplayCounts = Readonly<Record<'landed' | 'refused' | 'superseded' | 'lost', number>>

function ReplayItem({ worker, sync, count }: { worker: string; sync: string; count: number }) {
  const { hasScope } = useSession()
  const client = useQueryClient()
  const replay = useMutation({
    mutationFn: () => post<{ data: ReplayCounts }>(path`/api/syncs/${worker}/${sync}/quarantine/replay`),
    onSuccess: () => client.invalidateQueries({ queryKey: ['quarantine'] }),
  })
  const result =
    replay.data === undefined
      ? ''
      : Object.entries(replay.data.data)
          .filter(([, number]) => number > 0)
          .map(([outcome, number]) => `${number} ${outcome}`)
          .join(', ') || 'no records left to replay'
  return (
    <li>
      <b>{sync}</b> <span className="quiet">{pluralize(count, 'record')}</span>
      <button
        type="button"
        className="small"
        disabled={!hasScope('sync:write') || replay.isPending}
        onClick={() => replay.mutate()}
      >
        Replay
      </button>
      <span role="status">{replay.error !== null ? <span className="bad">{replay.error.message}</span> : result}</span>
    </li>
  )
}
