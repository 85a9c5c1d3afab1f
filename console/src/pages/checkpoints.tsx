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
  const { session, hasScope, signIn } = useSession()
  const [isRevealed, setIsRevealed] = useState(false)
  const checkpoints = useQuery({
    queryKey: ['checkpoints', worker, sync, isRevealed, moved],
    queryFn: ({ signal }) =>
      get<{ data: CheckpointDocument[] }>(
        `${path`/console/api/syncs/${worker}/${sync}/checkpoints`}?limit=15&reveal=${isRevealed}`,
        signal,
      ),
    placeholderData: (before) => before,
  })
  return (
    <section aria-labelledby="checkpoints">
      <div className="title-bar">
        <h2 id="checkpoints">Checkpoint history</h2>
        <button
          type="button"
          disabled={!hasScope('admin')}
          aria-pressed={isRevealed}
          title={hasScope('admin') ? '' : 'Requires the scope admin.'}
          onClick={() => (session.key === null ? signIn() : setIsRevealed(!isRevealed))}
        >
          {isRevealed ? 'Hide states' : 'Reveal states'}
        </button>
      </div>
      <QueryView of={checkpoints}>
        {({ data }) =>
          data.length === 0 ? (
            <EmptyState title="No checkpoint yet">The first complete cycle writes it.</EmptyState>
          ) : (
            <DataTable
              label="Checkpoint history, newest first"
              rows={data}
              keyOf={({ version, at, action }) => `${version} ${at} ${action}`}
              columns={[
                { title: 'Version', isNumber: true, cell: ({ version }) => version },
                { title: 'Time', cell: ({ at }) => <Timestamp at={at} /> },
                { title: 'Action', cell: ({ action }) => <span className="tag">{action}</span> },
                { title: 'Actor', cell: ({ actor }) => actor },
                { title: 'Cycle', isNumber: true, cell: ({ cycle }) => cycle ?? <span className="quiet">–</span> },
                { title: 'State', isWide: true, cell: ({ state }) => <CheckpointState state={state} /> },
                { title: 'Reason', cell: ({ reason }) => reason || <span className="quiet">–</span> },
              ]}
            />
          )
        }
      </QueryView>
    </section>
  )
}

function CheckpointState({ state }: { state: CheckpointDocument['state'] }) {
  if (state === null) return <span className="quiet">none</span>
  if (state.value !== undefined)
    return (
      <pre className="state" tabIndex={0} aria-label="State">
        <code>{JSON.stringify(state.value, null, 1)}</code>
      </pre>
    )
  return (
    <>
      <code>#{state.digest8}</code> <span className="quiet">{formatBytes(state.bytes)}</span>
    </>
  )
}
