import { useQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import type { DatabaseFacts, PacerDocument, SyncDetailsDocument } from '../../../src/server/console/documents.ts'
import { get, path } from '../api.ts'
import { useNow } from '../clock.ts'
import { DataTable } from '../components/data-table.tsx'
import { QueryView } from '../components/query-states.tsx'
import { TimeAgo } from '../components/time.tsx'
import { formatCount, formatDuration, pluralize } from '../format.ts'

const POLL_MS = 15_000

/** The databases of a sync with their columns and last verification, and its rate limits. */
export function SyncDetails({ worker, sync }: { worker: string; sync: string }) {
  const details = useQuery({
    queryKey: ['details', worker, sync],
    queryFn: ({ signal }) =>
      get<{ data: SyncDetailsDocument }>(path`/console/api/syncs/${worker}/${sync}/details`, signal),
    refetchInterval: POLL_MS,
  })
  return (
    <QueryView of={details} lines={3}>
      {({ data: { databases, pacers, isCut } }) => (
        <>
          {databases.length > 0 && (
            <section aria-labelledby="databases">
              <h2 id="databases">Databases</h2>
              <Databases databases={databases} />
              {isCut && <p className="more">The first {databases.length} databases</p>}
            </section>
          )}
          {pacers.length > 0 && (
            <section aria-labelledby="limits">
              <h2 id="limits">Rate limits</h2>
              <Pacers pacers={pacers} />
            </section>
          )}
        </>
      )}
    </QueryView>
  )
}

function Databases({ databases }: { databases: readonly DatabaseFacts[] }) {
  return (
    <DataTable
      label="Databases of the sync"
      rows={databases}
      keyOf={({ name }) => name}
      columns={[
        { title: 'Database', cell: ({ name }) => <Link href={path`/databases/${name}`}>{name}</Link> },
        {
          title: 'Rows',
          isNumber: true,
          cell: ({ rows, isRowsExact }) => `${isRowsExact ? '' : 'about '}${formatCount(rows)}`,
        },
        { title: 'Columns', isNumber: true, cell: ({ columns }) => formatCount(columns) },
        { title: 'Schema drift', cell: ({ drift }) => <Drift drift={drift} /> },
        {
          title: 'Last verification',
          isWide: true,
          cell: ({ certificate }) => <Certificate certificate={certificate} />,
        },
      ]}
    />
  )
}

const DRIFT_SHOWN = 3
const DRIFT_WORDS: Record<DatabaseFacts['drift'][number]['kind'], string> = {
  conflict: 'has values that do not fit',
  frozen: 'is new, and the columns are frozen',
  taken: 'has a column of yours with its name',
}

function Drift({ drift }: Pick<DatabaseFacts, 'drift'>) {
  if (drift.length === 0) return <span className="quiet">none</span>
  return (
    <ul className="drift">
      {drift.slice(0, DRIFT_SHOWN).map(({ member, kind, type, found, at }) => (
        <li key={`${member} ${kind}`}>
          <span className="clamped" title={member}>
            <code>{member}</code> {DRIFT_WORDS[kind]}
          </span>
          <span className="quiet">
            {type === null ? found : `${type}, found ${found}`}, <TimeAgo at={at} />
          </span>
        </li>
      ))}
      {drift.length > DRIFT_SHOWN && <li className="quiet">and {drift.length - DRIFT_SHOWN} more</li>}
    </ul>
  )
}

function Certificate({ certificate }: Pick<DatabaseFacts, 'certificate'>) {
  if (certificate === null)
    return (
      <span className="quiet">
        never; run <code>tidemark verify</code>
      </span>
    )
  const { outcome, verifiedAt, method, rows, differences, repaired } = certificate
  const found = differences.missing + differences.stale + differences.extra
  return (
    <>
      <span className={found - repaired > 0 ? 'tag tag-bad' : outcome === 'equal' ? 'tag tag-created' : 'tag'}>
        {outcome}
      </span>{' '}
      <TimeAgo at={verifiedAt} />{' '}
      <span className="quiet">
        {formatCount(rows)} rows by {method}
        {found > 0 && `, ${pluralize(found, 'difference')}, ${formatCount(repaired)} repaired`}
      </span>
    </>
  )
}

function Pacers({ pacers }: { pacers: readonly PacerDocument[] }) {
  return (
    <DataTable
      label="Rate limits of the sync"
      rows={pacers}
      keyOf={({ name }) => name}
      columns={[
        { title: 'Pacer', cell: ({ name }) => <b>{name}</b> },
        {
          title: 'Budget',
          isWide: true,
          cell: ({ allowedRequests, intervalMs }) =>
            `${pluralize(allowedRequests, 'request')} per ${formatDuration(intervalMs)}`,
        },
        {
          title: 'Reserved ahead',
          cell: (pacer) => <Reserved pacer={pacer} />,
        },
        {
          title: 'Last request',
          cell: ({ lastSlotAt }) =>
            lastSlotAt === null ? <span className="quiet">none yet</span> : <TimeAgo at={lastSlotAt} />,
        },
        { title: 'Pause', cell: ({ pausedUntil }) => <PauseNotice until={pausedUntil} /> },
      ]}
    />
  )
}

/** Reserved slots as a share of the budget of one interval. */
function Reserved({ pacer: { reserved, allowedRequests } }: { pacer: PacerDocument }) {
  return (
    <span className="budget">
      <span aria-hidden="true" className="budget-bar">
        <svg viewBox="0 0 100 10" preserveAspectRatio="none">
          <rect className="span-bed" width="100" height="10" />
          <rect className="span-done" width={Math.min(100, (reserved / allowedRequests) * 100)} height="10" />
        </svg>
      </span>
      {formatCount(reserved)}
    </span>
  )
}

function PauseNotice({ until }: { until: string | null }) {
  const now = useNow()
  return until === null || Date.parse(until) <= now ? (
    <span className="quiet">none</span>
  ) : (
    <span className="tag tag-warn">
      the source asked to wait, <TimeAgo at={until} />
    </span>
  )
}
