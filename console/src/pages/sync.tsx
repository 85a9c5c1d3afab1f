import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import type {
  ActivityDocument,
  ActivityRange,
  CycleDocument,
  SyncDocument,
} from '../../../src/server/console/documents.ts'
import { ApiError, get, path } from '../api.ts'
import { now as readNow, useCoarseNow } from '../clock.ts'
import { ActivityCharts, RangeSwitch } from '../components/activity-charts.tsx'
import { CoverageBar, CoverageLegend } from '../components/coverage-bar.tsx'
import { HealthLabel } from '../components/health-label.tsx'
import { EmptyState, MessageText, QueryView } from '../components/query-states.tsx'
import { TimeAgo, Elapsed } from '../components/time.tsx'
import { formatBytes, pluralize, formatSchedule } from '../format.ts'
import { findCondition, findLateAdvice } from '../sync-condition.ts'
import { useUrlState } from '../url-state.ts'
import { Checkpoints } from './checkpoints.tsx'
import { NextRun, Tidemark } from './sync-table.tsx'
import { SyncActions } from './sync-actions.tsx'
import { SyncCycles } from './sync-cycles.tsx'
import { SyncDetails } from './sync-details.tsx'

const POLL_MS = 2_000
const CYCLES = 20
const HOUR_MS = 3_600_000
const RANGE_MS: Record<ActivityRange, number> = { '1h': HOUR_MS, '24h': 24 * HOUR_MS, '7d': 168 * HOUR_MS }
const RANGES = ['1h', '24h', '7d'] as const

export function SyncPage({ worker, sync }: { worker: string; sync: string }) {
  const base = path`/console/api/syncs/${worker}/${sync}`
  const status = useQuery({
    queryKey: ['sync', worker, sync],
    queryFn: ({ signal }) => get<{ data: SyncDocument }>(base, signal),
    refetchInterval: POLL_MS,
  })
  const version = status.data?.data.version
  const [limit, setLimit] = useState(CYCLES)
  const cycles = useQuery({
    queryKey: ['cycles', worker, sync, limit],
    queryFn: ({ signal }) =>
      get<{ data: CycleDocument[] }>(`${path`/api/syncs/${worker}/${sync}/cycles`}?limit=${limit}`, signal),
    refetchInterval: POLL_MS,
    placeholderData: (before) => before,
  })
  const [values, setValues] = useUrlState(['range'])
  const range = RANGES.find((one) => one === values.range) ?? '1h'
  const activity = useQuery({
    queryKey: ['activity', worker, sync, range],
    queryFn: ({ signal }) =>
      get<{ data: ActivityDocument }>(`/console/api/activity?${new URLSearchParams({ worker, sync, range })}`, signal),
    refetchInterval: 5_000,
    placeholderData: (before) => before,
  })
  const crumbs = (
    <nav className="crumbs" aria-label="Breadcrumbs">
      <Link href="/">Overview</Link> <span aria-hidden="true">/</span> <span>{worker}</span>
    </nav>
  )
  if (status.error instanceof ApiError && status.error.status === 404)
    return (
      <>
        {crumbs}
        <h1 className="clamped" title={sync}>
          {sync}
        </h1>
        <EmptyState title="Sync not found">
          The worker does not declare it, and it has never run. <Link href="/">Show all syncs</Link>
        </EmptyState>
      </>
    )
  return (
    <>
      {crumbs}
      <QueryView of={status} lines={8}>
        {({ data }) => <SyncStatusPanel sync={data} />}
      </QueryView>
      <section className="chart-section" aria-label="Activity">
        <div className="title-bar">
          <h2>Activity</h2>
          <RangeSwitch ranges={RANGES} range={range} onRange={(one) => setValues({ range: one === '1h' ? '' : one })} />
        </div>
        <QueryView of={activity} lines={3}>
          {({ data }) => <ActivityCharts key={data.stepMs} activity={data} />}
        </QueryView>
      </section>
      <section aria-labelledby="cycles">
        <h2 id="cycles">Cycles</h2>
        <QueryView of={cycles}>
          {({ data }) => <SyncCycles cycles={data} from={readNow() - RANGE_MS[range]} />}
        </QueryView>
        {cycles.data?.data.length === limit && limit < 1_000 && (
          <p className="more">
            The newest {limit}
            <button type="button" onClick={() => setLimit(Math.min(1_000, limit * 4))}>
              Show more
            </button>
          </p>
        )}
      </section>
      <SyncDetails worker={worker} sync={sync} />
      <Checkpoints worker={worker} sync={sync} moved={version} />
    </>
  )
}

function SyncStatusPanel({ sync }: { sync: SyncDocument }) {
  const { lastError, failures, pair, databases, state } = sync
  const isLate = findCondition(sync, useCoarseNow()) === 'late'
  return (
    <section className="sync-status" aria-label="Status">
      <div className="title-bar">
        <div>
          <h1>
            {sync.sync} <HealthLabel health={sync.health} isRunning={sync.isRunning} />
          </h1>
          <p className="quiet">
            {sync.mode ?? 'unknown mode'} · {formatSchedule(sync.schedule)}
            {!sync.isDeclared && ' · the worker no longer declares it'}
            {databases.length > 0 && (
              <>
                {' '}
                · into{' '}
                {databases.map((name, at) => (
                  <span key={name}>
                    {at > 0 && ', '}
                    <Link href={path`/databases/${name}`}>{name}</Link>
                  </span>
                ))}
              </>
            )}
            {pair !== null && (
              <>
                {' '}
                · {pair.role === 'delta' ? 'its backfill is ' : 'the backfill of '}
                <Link href={path`/syncs/${sync.worker}/${pair.with}`}>{pair.with}</Link>
              </>
            )}
          </p>
        </div>
        <SyncActions sync={sync} />
      </div>
      {failures > 0 && lastError !== null && (
        <div className={sync.health === 'ERROR' ? 'failure' : 'failure is-warning'} role="status">
          <strong>
            {lastError.code}{' '}
            <span className="quiet">
              {failures === 1 ? 'once' : `${failures} times in a row`}, last failure <TimeAgo at={lastError.at} />
            </span>
          </strong>
          <p>{lastError.message}</p>
          <p className="next-step">
            <b>Next step</b> <MessageText text={lastError.advice} />
          </p>
        </div>
      )}
      {sync.connection !== null && sync.connection.status !== 'active' && (
        <div className={sync.health === 'ERROR' ? 'failure' : 'failure is-warning'} role="status">
          <strong>
            Connection <span className="breakable">{sync.connection.name}</span> is{' '}
            {sync.connection.status.replaceAll('_', ' ').replace('needs reauthorization', 'refused by its vendor')}
          </strong>
          {sync.connection.statusReason !== null && <p>{sync.connection.statusReason}</p>}
          <p className="next-step">
            <b>Next step</b>{' '}
            <Link href={`/connections?search=${encodeURIComponent(sync.connection.name)}`}>Open the connection</Link>
          </p>
        </div>
      )}
      {isLate && sync.lateAt !== null && (
        <div className="failure is-warning" role="status">
          <strong>
            Late{' '}
            <span className="quiet">
              since <TimeAgo at={sync.lateAt} />
            </span>
          </strong>
          <p>The last complete cycle began more than two intervals of the schedule ago.</p>
          <p className="next-step">
            <b>Next step</b> <MessageText text={findLateAdvice(sync)} />
          </p>
        </div>
      )}
      {sync.backfillNeeded !== null && (
        <div className="failure is-warning" role="status">
          <strong>
            Needs a backfill{' '}
            <span className="quiet">
              since <TimeAgo at={sync.backfillNeeded.since} />
            </span>
          </strong>
          <p>{sync.backfillNeeded.reason}</p>
          <p>The scheduler runs it. Until it is complete, changes may be missing.</p>
        </div>
      )}
      <div className="coverage-panel">
        <CoverageBar
          coverage={sync.coverage}
          completeSince={pair?.role === 'backfill' ? null : sync.completeSince}
          large
        />
        <div className="coverage-words">
          <p>{sync.coverage.words}</p>
          <CoverageLegend />
        </div>
      </div>
      <dl className="facts">
        <div>
          <dt>Tidemark</dt>
          <dd>
            <Tidemark sync={sync} />
          </dd>
          <dd className="quiet">
            {sync.tidemark?.startsWith('#') ? `cursor ${sync.tidemark}` : 'complete up to here'}
          </dd>
        </div>
        <div>
          <dt>Lag</dt>
          <dd>{sync.completeSince === null ? '–' : <Elapsed at={sync.completeSince} />}</dd>
          <dd className="quiet">behind the source</dd>
        </div>
        <div>
          <dt>Checkpoint</dt>
          <dd>version {sync.version}</dd>
          <dd className="quiet">
            {state === null ? 'no state' : `state #${state.digest8}, ${formatBytes(state.bytes)}`}
          </dd>
        </div>
        <div>
          <dt>Next cycle</dt>
          <dd>
            <NextRun sync={sync} />
          </dd>
          <dd className="quiet">{sync.next?.why ?? 'not scheduled here'}</dd>
        </div>
        <div>
          <dt>Lease held by</dt>
          <dd className="clip" title={sync.heldBy ?? ''}>
            {sync.heldBy ?? '–'}
          </dd>
          <dd className="quiet">
            {sync.isRunning
              ? `page ${sync.lastCycle?.pages ?? 0} of the cycle`
              : sync.lastCycle === null
                ? 'never ran'
                : pluralize(sync.lastCycle.pages, 'page') + ' in the last cycle'}
          </dd>
        </div>
      </dl>
    </section>
  )
}
