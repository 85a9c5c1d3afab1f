import { useState } from 'react'
import { Link } from 'wouter'
import type { ChangeDocument } from '../../../src/server/console/documents.ts'
import { path } from '../api.ts'
import { EmptyState, ErrorMessage } from '../components/query-states.tsx'
import { Timestamp } from '../components/time.tsx'
import { formatKey } from '../format.ts'
import { useLiveChanges, type LiveState } from '../live-changes.ts'
import { useDatabases } from './databases.tsx'

const ACTIONS = ['created', 'updated', 'deleted'] as const
type Action = (typeof ACTIONS)[number]
const STATE_LABELS: Record<LiveState, string> = {
  connecting: 'Connecting',
  live: 'Live',
  broken: 'Reconnecting',
  refused: 'Not allowed',
}

export function FeedPage() {
  const [database, setDatabase] = useState('')
  const [actions, setActions] = useState<readonly Action[]>(ACTIONS)
  const [held, setHeld] = useState<readonly ChangeDocument[] | null>(null)
  const { changes, state, error } = useLiveChanges(database)
  const names = useDatabases().data?.data.map(({ name }) => name) ?? []
  const shown = (held ?? changes).filter(({ action }) => actions.includes(action))
  const waiting = held === null ? 0 : changes.findIndex(({ eventId }) => eventId === held[0]?.eventId)
  const toggle = (action: Action): void =>
    setActions(actions.includes(action) ? actions.filter((one) => one !== action) : [...actions, action])
  return (
    <>
      <div className="title-bar">
        <h1>
          Feed{' '}
          <span className={`live live-${state}`} role="status">
            {STATE_LABELS[state]}
          </span>
        </h1>
        <div className="bar">
          <label className="field">
            Database{' '}
            <select
              value={database}
              onChange={(event) => {
                setHeld(null)
                setDatabase(event.target.value)
              }}
            >
              <option value="">all</option>
              {names.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
          <div className="chips" role="group" aria-label="Filter by action">
            {ACTIONS.map((action) => (
              <button
                key={action}
                type="button"
                className="chip"
                aria-pressed={actions.includes(action)}
                onClick={() => toggle(action)}
              >
                {action}
              </button>
            ))}
          </div>
          <button
            type="button"
            className="steady"
            aria-pressed={held !== null}
            onClick={() => setHeld(held === null ? changes : null)}
          >
            {held === null ? 'Pause' : waiting === 0 ? 'Resume' : `Resume (${waiting < 0 ? 'many' : waiting} new)`}
          </button>
        </div>
      </div>
      {error !== null && <ErrorMessage error={error} />}
      {shown.length === 0 && error !== null ? null : shown.length === 0 ? (
        <EmptyState title={changes.length === 0 ? 'No changes yet' : 'No changes with these actions yet'}>
          New changes appear here as they are committed.
        </EmptyState>
      ) : (
        <div className="scroll feed" role="region" aria-label="Changes, newest first" tabIndex={0}>
          <table className="feed-table">
            <thead>
              <tr>
                <th scope="col">Time</th>
                <th scope="col">Action</th>
                <th scope="col">Database</th>
                <th scope="col">Key</th>
                <th scope="col">Record</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((change) => (
                <ChangeRow key={change.eventId} change={change} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  )
}

function ChangeRow({ change: { action, updatedAt, database, resourceId, snapshot } }: { change: ChangeDocument }) {
  return (
    <tr>
      <td>
        <Timestamp at={updatedAt} />
      </td>
      <td>
        <span className={`tag tag-${action}`}>{action}</span>
      </td>
      <td>
        <Link href={path`/databases/${database}`}>{database}</Link>
      </td>
      <td className="feed-key">
        <Link href={path`/databases/${database}/${resourceId}`}>{formatKey(resourceId)}</Link>
      </td>
      <td className="feed-record">
        {snapshot === null ? (
          <span className="quiet">deleted</span>
        ) : (
          JSON.stringify(snapshot).slice(1, 200).replace(/\}$/, '')
        )}
      </td>
    </tr>
  )
}
