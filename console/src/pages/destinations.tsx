import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import type { DestinationDocument } from '../../../src/server/console/documents.ts'
import { get, path, post } from '../api.ts'
import { DataTable } from '../components/data-table.tsx'
import { Dialog } from '../components/dialog.tsx'
import { HealthLabel } from '../components/health-label.tsx'
import { EmptyState, MessageText, QueryView } from '../components/query-states.tsx'
import { TimeAgo } from '../components/time.tsx'
import { formatCount, formatDuration, formatKey, formatSchedule, pluralize } from '../format.ts'
import { useSession } from '../session.tsx'

const POLL_MS = 3_000

type Progress = DestinationDocument['databases'][number]

export function DestinationsPage() {
  const destinations = useQuery({
    queryKey: ['destinations'],
    queryFn: ({ signal }) => get<{ data: DestinationDocument[] }>('/api/destinations', signal),
    refetchInterval: POLL_MS,
  })
  return (
    <>
      <div className="title-bar">
        <div>
          <h1>Destinations</h1>
          <p className="quiet">Other systems that receive the databases from the log, exactly once.</p>
        </div>
      </div>
      <QueryView of={destinations}>
        {({ data }) =>
          data.length === 0 ? (
            <EmptyState title="No destinations">
              <MessageText text="Add one with `tidemark destinations add`." />
            </EmptyState>
          ) : (
            data.map((destination) => <DestinationCard key={destination.destination} destination={destination} />)
          )
        }
      </QueryView>
    </>
  )
}

function DestinationCard({ destination }: { destination: DestinationDocument }) {
  const { destination: name, health, kind, location, mode, schedule, error, databases } = destination
  return (
    <section className="card" aria-label={`Destination ${name}`}>
      <div className="title-bar">
        <div>
          <h2 className="named">
            <span className="clamped">{name}</span>{' '}
            <HealthLabel health={health} isRunning={destination.heldBy !== null} />
          </h2>
          <p className="quiet">
            {location ?? kind ?? 'never run'} · {mode ?? 'mirror'} ·{' '}
            {destination.declared ? formatSchedule(schedule) : 'not declared by the worker'}
          </p>
        </div>
        <DestinationActions destination={destination} />
      </div>
      {error !== null && (
        <div className="failure" role="status">
          <strong>{error.code}</strong>
          <p>{error.message}</p>
          <p className="quiet">
            <MessageText text={error.advice} />
          </p>
        </div>
      )}
      <dl className="facts">
        <div>
          <dt>Lag</dt>
          <dd>{destination.lagMs === null ? '–' : formatDuration(destination.lagMs)}</dd>
          <dd className="quiet">age of the oldest pending change</dd>
        </div>
        <div>
          <dt>Behind</dt>
          <dd>{destination.behind === null ? '–' : formatCount(destination.behind)}</dd>
          <dd className="quiet">entries of the log</dd>
        </div>
        <div>
          <dt>Last run</dt>
          <dd>{destination.startedAt === null ? 'never' : <TimeAgo at={destination.startedAt} />}</dd>
          <dd className="quiet">
            {destination.failures === 0 ? 'no failures' : `${pluralize(destination.failures, 'failure')} in a row`}
          </dd>
        </div>
        <div>
          <dt>Next run</dt>
          <dd>{describeNext(destination)}</dd>
          <dd className="quiet">{destination.retryAt === null ? 'as scheduled' : 'after a failure'}</dd>
        </div>
      </dl>
      <DataTable
        label={`Databases of ${name}`}
        rows={databases}
        keyOf={({ database }) => database}
        columns={[
          {
            title: 'Database',
            isWide: true,
            cell: ({ database }) => <Link href={path`/databases/${database}`}>{database}</Link>,
          },
          { title: 'State', cell: (progress) => <StateTag progress={progress} /> },
          { title: 'Sequence', isNumber: true, cell: ({ sequence }) => formatCount(sequence) },
          { title: 'Applied', isNumber: true, cell: ({ changes }) => formatCount(changes) },
          {
            title: 'Newest change',
            cell: ({ committedAt }) => (committedAt === null ? '–' : <TimeAgo at={committedAt} />),
          },
          { title: 'Rejected', cell: ({ database, failure }) => describeFailure(database, failure) },
        ]}
      />
    </section>
  )
}

function DestinationActions({ destination }: { destination: DestinationDocument }) {
  const { hasScope } = useSession()
  const client = useQueryClient()
  const [isResyncing, setIsResyncing] = useState(false)
  const { destination: name, paused, triggeredAt } = destination
  const signal = useMutation({
    mutationFn: (kind: 'run' | 'pause' | 'resume') => post(`${path`/api/destinations/${name}`}/${kind}`),
    onSuccess: () => client.invalidateQueries({ queryKey: ['destinations'] }),
  })
  const isDisabled = !hasScope('sync:write') || signal.isPending
  const why = hasScope('sync:write') ? undefined : 'Requires the scope sync:write.'
  return (
    <div className="actions">
      <button
        type="button"
        className="primary"
        disabled={isDisabled || paused || triggeredAt !== null}
        title={why}
        onClick={() => signal.mutate('run')}
      >
        {triggeredAt === null ? 'Run now' : 'Run requested'}
      </button>
      <button
        type="button"
        disabled={isDisabled}
        title={why}
        onClick={() => signal.mutate(paused ? 'resume' : 'pause')}
      >
        {paused ? 'Resume' : 'Pause'}
      </button>
      <button type="button" className="danger" disabled={isDisabled} title={why} onClick={() => setIsResyncing(true)}>
        Load again…
      </button>
      {signal.error !== null && (
        <p className="field-error" role="alert">
          {signal.error.message}
        </p>
      )}
      {isResyncing && <ResyncDialog destination={destination} onClose={() => setIsResyncing(false)} />}
    </div>
  )
}

/** Says what is replaced before it is requested. */
function ResyncDialog({ destination, onClose }: { destination: DestinationDocument; onClose: () => void }) {
  const client = useQueryClient()
  const { destination: name, location, databases } = destination
  const [chosen, setChosen] = useState<readonly string[]>(databases.map(({ database }) => database))
  const resync = useMutation({
    mutationFn: () => post(`${path`/api/destinations/${name}`}/resync`, { databases: chosen }),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ['destinations'] })
      onClose()
    },
  })
  const toggle = (database: string): void =>
    setChosen(chosen.includes(database) ? chosen.filter((one) => one !== database) : [...chosen, database])
  return (
    <Dialog
      title={`Load ${name} again`}
      onClose={onClose}
      actions={
        <button
          type="button"
          className="danger primary"
          disabled={chosen.length === 0 || resync.isPending}
          onClick={() => resync.mutate()}
        >
          Load again
        </button>
      }
    >
      <p>
        The rows in {location ?? name} are replaced by those of the store. The old rows stay until the load is complete,
        if the destination can keep both.
      </p>
      <fieldset className="choices">
        <legend>Databases</legend>
        <div className="choice-list">
          {databases.map(({ database }) => (
            <label key={database} className="choice">
              <input type="checkbox" checked={chosen.includes(database)} onChange={() => toggle(database)} />
              {database}
            </label>
          ))}
        </div>
      </fieldset>
      {resync.error !== null && (
        <p className="field-error" role="alert">
          {resync.error.message}
        </p>
      )}
    </Dialog>
  )
}

const TONES: Record<Progress['state'], string> = {
  new: '',
  loading: 'tag-now',
  following: 'tag-created',
  waiting: 'tag-warn',
  failed: 'tag-bad',
}

function StateTag({ progress: { state, loadReason } }: { progress: Progress }) {
  return (
    <>
      <span className={`tag ${TONES[state]}`}>{state}</span>
      {state === 'loading' && loadReason !== null && <span className="quiet"> {loadReason}</span>}
    </>
  )
}

function describeFailure(database: string, failure: Progress['failure']) {
  if (failure === null) return '–'
  const { firstSequence, lastSequence, key, code } = failure
  if (firstSequence === null || lastSequence === null) return code
  return (
    <>
      {key !== null && (
        <>
          <Link className="clamped" title={key} href={path`/databases/${database}/${key}`}>
            {formatKey(key)}
          </Link>{' '}
        </>
      )}
      <span className="quiet">
        {firstSequence === lastSequence
          ? `sequence ${formatCount(firstSequence)}`
          : `sequences ${formatCount(firstSequence)} to ${formatCount(lastSequence)}`}
      </span>
    </>
  )
}

function describeNext({ next, heldBy }: DestinationDocument) {
  if (heldBy !== null) return 'now'
  if (next === null) return '–'
  if (next.at !== null) return <TimeAgo at={next.at} />
  return next.why === 'current' ? 'with the next change' : next.why
}
