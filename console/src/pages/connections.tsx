import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import type {
  ConnectionDocument,
  OverviewDocument,
  ProviderDocument,
  SyncDocument,
} from '../../../src/server/console/documents.ts'
import { get, path } from '../api.ts'
import { EmptyState, ErrorMessage, MessageText, QueryView } from '../components/query-states.tsx'
import { TimeAgo } from '../components/time.tsx'
import { pluralize } from '../format.ts'
import { useSession } from '../session.tsx'
import { useUrlState } from '../url-state.ts'
import { ConnectionActions } from './connection-actions.tsx'
import { ConnectionFormDialog } from './connection-form.tsx'

const POLL_MS = 5_000
const SYNCS_SHOWN = 4

type Status = ConnectionDocument['status']

/** Connections that need a person come first. */
const STATUS_ORDER: readonly Status[] = ['needs_reauthorization', 'disabled', 'revoked', 'active']
const STATUS_LABELS: Record<Status, string> = {
  needs_reauthorization: 'Needs authorization',
  disabled: 'Disabled',
  revoked: 'Revoked',
  active: 'Active',
}
const STATUS_TONES: Record<Status, string> = {
  needs_reauthorization: 'error',
  disabled: 'paused',
  revoked: 'paused',
  active: 'healthy',
}

export function ConnectionsPage() {
  const { session, hasScope } = useSession()
  const [values, setValues] = useUrlState(['search', 'status'])
  const [isAdding, setIsAdding] = useState(false)
  const connections = useQuery({
    queryKey: ['connections'],
    queryFn: ({ signal }) => get<{ data: ConnectionDocument[] }>('/api/connections', signal),
    refetchInterval: POLL_MS,
  })
  const providers = useQuery({
    queryKey: ['providers'],
    queryFn: ({ signal }) => get<{ data: ProviderDocument[] }>('/console/api/providers', signal),
    staleTime: Infinity,
  })
  const overview = useQuery({
    queryKey: ['overview', false],
    queryFn: async ({ signal }) => (await get<{ data: OverviewDocument }>('/console/api/overview', signal)).data,
    refetchInterval: POLL_MS,
    enabled: hasScope('sync:read'),
  })
  const isAllowed = hasScope('connections:write')
  return (
    <>
      <div className="title-bar">
        <div>
          <h1>Connections</h1>
          <p className="quiet">
            Accounts of the tenant {session.tenant} at vendors. Their credentials are stored sealed and never shown.
          </p>
        </div>
        <button
          type="button"
          className="primary"
          disabled={!isAllowed || providers.data === undefined}
          title={isAllowed ? undefined : 'Requires the scope connections:write.'}
          onClick={() => setIsAdding(true)}
        >
          New connection…
        </button>
      </div>
      <QueryView of={connections}>
        {({ data }) => (
          <Connections
            connections={data}
            providers={providers.data?.data ?? []}
            syncs={overview.data?.syncs ?? []}
            values={values}
            setValues={setValues}
          />
        )}
      </QueryView>
      {providers.error !== null && connections.error === null && <ErrorMessage error={providers.error} />}
      {isAdding && providers.data !== undefined && (
        <ConnectionFormDialog providers={providers.data.data} onClose={() => setIsAdding(false)} />
      )}
    </>
  )
}

function Connections({
  connections,
  providers,
  syncs,
  values,
  setValues,
}: {
  connections: readonly ConnectionDocument[]
  providers: readonly ProviderDocument[]
  syncs: readonly SyncDocument[]
  values: Readonly<Record<'search' | 'status', string>>
  setValues: (change: Partial<Record<'search' | 'status', string>>) => void
}) {
  if (connections.length === 0)
    return (
      <EmptyState title="No connections">
        <MessageText text="Add one here or with `tidemark connections add`. A sync that names a connection runs for every tenant that has it." />
      </EmptyState>
    )
  const wanted = values.search.trim().toLowerCase()
  const shown = connections
    .filter(
      ({ name, provider, account, status }) =>
        (values.status === '' || status === values.status) &&
        [name, provider, account?.label ?? '', account?.id ?? ''].some((text) => text.toLowerCase().includes(wanted)),
    )
    .toSorted((a, b) => STATUS_ORDER.indexOf(a.status) - STATUS_ORDER.indexOf(b.status))
  const refused = connections.filter(({ status }) => status === 'needs_reauthorization').length
  return (
    <section aria-label="Connections">
      {refused > 0 && (
        <p className="connection-answer">
          <span className="health health-error">
            <span className="health-dot" aria-hidden="true" />
            {refused === 1 ? '1 connection needs' : `${refused} connections need`} to be authorized again
          </span>{' '}
          <span className="quiet">The syncs that read with {refused === 1 ? 'it' : 'them'} are stopped.</span>
        </p>
      )}
      <div className="bar">
        <div className="chips" role="group" aria-label="Filter by status">
          <button
            type="button"
            className="chip"
            aria-pressed={values.status === ''}
            onClick={() => setValues({ status: '' })}
          >
            All <b>{connections.length}</b>
          </button>
          {STATUS_ORDER.map((status) => {
            const count = connections.filter((connection) => connection.status === status).length
            return count === 0 ? null : (
              <button
                key={status}
                type="button"
                className="chip"
                aria-pressed={values.status === status}
                onClick={() => setValues({ status: values.status === status ? '' : status })}
              >
                <StatusLabel status={status} /> <b>{count}</b>
              </button>
            )
          })}
        </div>
        <input
          type="search"
          placeholder="Search connections  /"
          aria-label="Search connections"
          value={values.search}
          onChange={(event) => setValues({ search: event.target.value })}
        />
      </div>
      {shown.length === 0 ? (
        <EmptyState title="No connections match">
          <button type="button" onClick={() => setValues({ search: '', status: '' })}>
            Show all
          </button>
        </EmptyState>
      ) : (
        <ul className="connection-list">
          {shown.map((connection) => (
            <ConnectionCard
              key={connection.name}
              connection={connection}
              provider={providers.find(({ name }) => name === connection.provider)}
              syncs={syncs.filter((sync) => sync.connection?.name === connection.name)}
            />
          ))}
        </ul>
      )}
    </section>
  )
}

function StatusLabel({ status }: { status: Status }) {
  return (
    <span className={`health health-${STATUS_TONES[status]}`}>
      <span className="health-dot" aria-hidden="true" />
      {STATUS_LABELS[status]}
    </span>
  )
}

const NEXT_STEPS: Record<Exclude<Status, 'active'>, string> = {
  needs_reauthorization: 'Authorize it again or replace its credentials. Its syncs then continue where they stopped.',
  disabled: 'Enable it. Its syncs then continue where they stopped.',
  revoked: 'Its credentials were deleted. Authorize it again or enter new ones.',
}

function ConnectionCard({
  connection,
  provider,
  syncs,
}: {
  connection: ConnectionDocument
  provider: ProviderDocument | undefined
  syncs: readonly SyncDocument[]
}) {
  const { name, status, statusReason, account, scopes, updatedAt } = connection
  const lastUsed = syncs
    .flatMap(({ lastCycle }) => (lastCycle === null ? [] : [lastCycle.endedAt ?? lastCycle.startedAt]))
    .toSorted()
    .at(-1)
  return (
    <li>
      <section className={`card connection connection-${status}`} aria-label={`Connection ${name}`}>
        <div className="title-bar">
          <div>
            <h2 className="named">
              <span className="clamped" title={name}>
                {name}
              </span>{' '}
              <StatusLabel status={status} />
            </h2>
            <p className="quiet clamped" title={account?.label}>
              {provider?.title ?? connection.provider}
              {scopes.length > 0 && ` · ${pluralize(scopes.length, 'scope')}`}
              {account !== null && ` · ${account.label === '' ? account.id : account.label}`}
            </p>
          </div>
          <ConnectionActions connection={connection} provider={provider} />
        </div>
        {status !== 'active' && (
          <div className="next-step connection-problem">
            {statusReason !== null && (
              <p className="clamped" title={statusReason}>
                {statusReason}
              </p>
            )}
            <p>
              <b>Next step</b> {NEXT_STEPS[status]}
            </p>
          </div>
        )}
        <dl className="connection-facts">
          <div>
            <dt>Account</dt>
            <dd className="clamped" title={account?.id}>
              {account === null ? 'not known; test the connection' : account.id}
            </dd>
          </div>
          <div>
            <dt>Last used</dt>
            <dd>{lastUsed === undefined ? 'never' : <TimeAgo at={lastUsed} />}</dd>
          </div>
          <div>
            <dt>Changed</dt>
            <dd>
              <TimeAgo at={updatedAt} />
            </dd>
          </div>
          <div>
            <dt>Syncs</dt>
            <dd>
              {syncs.length === 0
                ? 'none'
                : syncs.slice(0, SYNCS_SHOWN).map((sync, at) => (
                    <span key={`${sync.worker}/${sync.sync}`}>
                      {at > 0 && ', '}
                      <Link href={path`/syncs/${sync.worker}/${sync.sync}`}>{sync.sync}</Link>
                    </span>
                  ))}
              {syncs.length > SYNCS_SHOWN && (
                <>
                  {' '}
                  <Link href={`/?connection=${encodeURIComponent(name)}`}>and {syncs.length - SYNCS_SHOWN} more</Link>
                </>
              )}
            </dd>
          </div>
        </dl>
      </section>
    </li>
  )
}
