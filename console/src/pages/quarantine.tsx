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
  const asked = useQuery({ queryKey: ['quarantine'], queryFn: ({ signal }) => get<{ data: QuarantineDocument[] }>('/api/quarantine?limit=200', signal), refetchInterval: 10_000 })
  const wanted = text.trim().toLowerCase()
  return (
    <>
      <div className="title-bar">
        <div><h1>Quarantine</h1><p className="quiet">Records that could not be landed, with the reason. Everything around them did.</p></div>
        {(asked.data?.data.length ?? 0) > 0 && <input type="search" placeholder="Search  /" aria-label="Search the quarantine" value={text} onChange={(event) => setText(event.target.value)} />}
      </div>
      <QueryView of={asked}>
        {({ data }) => data.length === 0 ? <EmptyState title="Nothing is in quarantine">Every record that came could be landed.</EmptyState> : (
          <>
            <ReplayList entries={data} />
            <DataTable
              label="Quarantine, newest first" keyOf={({ id }) => id} rows={data.filter((entry) => wanted === '' || JSON.stringify(entry).toLowerCase().includes(wanted))}
              columns={[
                { title: 'When', cell: ({ at }) => <Timestamp at={at} /> },
                { title: 'Sync', cell: ({ worker, sync, cycle, page }) => <><Link href={path`/syncs/${worker}/${sync}`}>{sync}</Link> <span className="quiet">cycle {cycle}, page {page}</span></> },
                { title: 'Database', cell: ({ database }) => database },
                { title: 'Key', cell: ({ key }) => key ?? <span className="quiet">none</span> },
                { title: 'Why', cell: ({ code, message }) => <><span className="bad">{code}</span> {message}</> },
                { title: 'Record', isWide: true, cell: ({ text: record }) => <pre className="state" tabIndex={0} aria-label="The record"><code>{record.slice(0, 2_000)}</code></pre> },
              ]}
            />
          </>
        )}
      </QueryView>
    </>
  )
}

/** A replay covers all quarantined records of one sync. */
function ReplayList({ entries }: { entries: readonly QuarantineDocument[] }) {
  const names = [...new Set(entries.map(({ worker, sync }) => `${worker}/${sync}`))].toSorted()
  return <ul className="replays">{names.map((name) => <ReplayItem key={name} entries={entries.filter(({ worker, sync }) => `${worker}/${sync}` === name)} />)}</ul>
}

type ReplayCounts = Readonly<Record<'landed' | 'refused' | 'superseded' | 'lost', number>>

function ReplayItem({ entries }: { entries: readonly QuarantineDocument[] }) {
  const { hasScope: may } = useSession()
  const client = useQueryClient()
  const { worker, sync } = entries[0]!
  const replay = useMutation({
    mutationFn: () => post<{ data: ReplayCounts }>(path`/api/syncs/${worker}/${sync}/quarantine/replay`),
    onSuccess: () => client.invalidateQueries({ queryKey: ['quarantine'] }),
  })
  const told = replay.data === undefined ? '' : Object.entries(replay.data.data).filter(([, count]) => count > 0).map(([fate, count]) => `${count} ${fate}`).join(', ') || 'nothing was left to try'
  return (
    <li>
      <b>{sync}</b> <span className="quiet">{pluralize(entries.length, 'record')}</span>
      <button type="button" className="small" disabled={!may('sync:write') || replay.isPending} onClick={() => replay.mutate()}>Try again</button>
      <span role="status">{replay.error !== null ? <span className="bad">{replay.error.message}</span> : told}</span>
    </li>
  )
}
