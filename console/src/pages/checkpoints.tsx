import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { CheckpointDocument } from '../../../src/server/console/documents.ts'
import { get, path } from '../api.ts'
import { DataTable } from '../components/data-table.tsx'
import { EmptyState, QueryView } from '../components/query-states.tsx'
import { Timestamp } from '../components/time.tsx'
import { formatBytes } from '../format.ts'
import { useSession } from '../session.tsx'

/** Shows states as digests. Values require the scope `admin` and an explicit click. */
export function Checkpoints({ worker, sync, moved }: { worker: string; sync: string; moved: number | undefined }) {
  const { session, hasScope: may, signIn } = useSession()
  const [reveals, setReveals] = useState(false)
  const asked = useQuery({
    queryKey: ['checkpoints', worker, sync, reveals, moved],
    queryFn: ({ signal }) => get<{ data: CheckpointDocument[] }>(`${path`/console/api/syncs/${worker}/${sync}/checkpoints`}?limit=15&reveal=${reveals}`, signal),
    placeholderData: (before) => before,
  })
  return (
    <section aria-labelledby="checkpoints">
      <div className="title-bar">
        <h2 id="checkpoints">Checkpoint history</h2>
        <button type="button" disabled={!may('admin')} aria-pressed={reveals} title={may('admin') ? '' : 'It takes the scope admin to see states as they are.'} onClick={() => (session.key === null ? signIn() : setReveals(!reveals))}>{reveals ? 'Hide the states' : 'Reveal the states'}</button>
      </div>
      <QueryView of={asked}>
        {({ data }) => data.length === 0 ? <EmptyState title="The checkpoint has never moved">It does with the first complete cycle.</EmptyState> : (
          <DataTable
            label="Checkpoint history, newest first" rows={data} keyOf={({ version, at, action }) => `${version} ${at} ${action}`}
            columns={[
              { title: 'Version', isNumber: true, cell: ({ version }) => version },
              { title: 'When', cell: ({ at }) => <Timestamp at={at} /> },
              { title: 'What', cell: ({ action }) => <span className="tag">{action}</span> },
              { title: 'By', cell: ({ actor }) => actor },
              { title: 'Cycle', isNumber: true, cell: ({ cycle }) => cycle ?? <span className="quiet">–</span> },
              { title: 'State', isWide: true, cell: ({ state }) => <CheckpointState state={state} /> },
              { title: 'Reason', cell: ({ reason }) => reason || <span className="quiet">–</span> },
            ]}
          />
        )}
      </QueryView>
    </section>
  )
}

function CheckpointState({ state }: { state: CheckpointDocument['state'] }) {
  if (state === null) return <span className="quiet">none</span>
  if (state.value !== undefined) return <pre className="state" tabIndex={0} aria-label="State"><code>{JSON.stringify(state.value, null, 1)}</code></pre>
  return <><code>#{state.digest8}</code> <span className="quiet">{formatBytes(state.bytes)}</span></>
}
