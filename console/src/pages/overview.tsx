import { useQuery } from '@tanstack/react-query'
import { memo, useMemo, useRef, useState } from 'react'
import { Link } from 'wouter'
import type { Health } from '../../../src/runner/health.ts'
import type { ActivityDocument, OverviewDocument, SyncDocument } from '../../../src/server/console/documents.ts'
import { get, path } from '../api.ts'
import { useNow } from '../clock.ts'
import { ActivityCharts } from '../components/activity-charts.tsx'
import { CycleCounts } from '../components/cycle-counts.tsx'
import { CoverageBar, CoverageLegend } from '../components/coverage-bar.tsx'
import { HealthLabel } from '../components/health-label.tsx'
import { EmptyState, QueryView } from '../components/query-states.tsx'
import { TimeAgo, Timestamp, Elapsed } from '../components/time.tsx'
import { formatCompact, computeRowsPerSecond, formatSchedule } from '../format.ts'
import { useVisibleRows } from '../visible-rows.ts'

const POLL_MS = 2_000
const CHART_MS = 5_000
const HEALTH_ORDER: readonly Health[] = ['ERROR', 'WARNING', 'INITIALIZING', 'HEALTHY', 'PAUSED']

export function OverviewPage() {
  const overview = useQuery({
    queryKey: ['overview'],
    queryFn: ({ signal }) => get<{ data: OverviewDocument }>('/console/api/overview', signal),
    refetchInterval: POLL_MS,
  })
  const activity = useQuery({
    queryKey: ['activity'],
    queryFn: ({ signal }) => get<{ data: ActivityDocument }>('/console/api/activity', signal),
    refetchInterval: CHART_MS,
  })
  return (
    <>
      <h1 className="hidden">Overview</h1>
      <section className="chart-section" aria-label="Activity">
        <QueryView of={activity} lines={3}>
          {({ data }) => <ActivityCharts activity={data} />}
        </QueryView>
      </section>
      <QueryView of={overview} lines={10}>
        {({ data }) => (data.syncs.length === 0 ? <NoSyncs /> : <Syncs syncs={data.syncs} />)}
      </QueryView>
    </>
  )
}

function Syncs({ syncs }: { syncs: readonly SyncDocument[] }) {
  const [search, setSearch] = useState('')
  const [health, setHealth] = useState<Health | null>(null)
  const counts = useMemo(
    () => new Map(HEALTH_ORDER.map((value) => [value, syncs.filter((sync) => sync.health === value).length])),
    [syncs],
  )
  const shown = useMemo(() => {
    const wanted = search.trim().toLowerCase()
    const matches = syncs.filter(
      (sync) =>
        (health === null || sync.health === health) &&
        (wanted === '' ||
          [sync.sync, sync.worker, ...sync.databases].some((text) => text.toLowerCase().includes(wanted))),
    )
    return groupPairs(matches)
  }, [syncs, search, health])
  return (
    <section aria-label="Syncs">
      <div className="bar">
        <div className="chips" role="group" aria-label="Filter by health">
          <button type="button" className="chip" aria-pressed={health === null} onClick={() => setHealth(null)}>
            All <b>{syncs.length}</b>
          </button>
          {HEALTH_ORDER.filter((value) => (counts.get(value) ?? 0) > 0).map((value) => (
            <button
              key={value}
              type="button"
              className="chip"
              aria-pressed={health === value}
              onClick={() => setHealth(health === value ? null : value)}
            >
              <HealthLabel health={value} /> <b>{counts.get(value)}</b>
            </button>
          ))}
        </div>
        <input
          type="search"
          placeholder="Search syncs  /"
          aria-label="Search syncs"
          value={search}
          onChange={(event) => setSearch(event.target.value)}
        />
        <CoverageLegend />
      </div>
      {shown.length === 0 ? (
        <EmptyState title="No syncs match">
          <button
            type="button"
            onClick={() => {
              setSearch('')
              setHealth(null)
            }}
          >
            Show all
          </button>
        </EmptyState>
      ) : (
        <SyncRows syncs={shown} />
      )}
    </section>
  )
}

/** Lists a backfill right after its delta. */
function groupPairs(syncs: readonly SyncDocument[]): SyncDocument[] {
  const nameOf = ({ worker }: SyncDocument, sync: string): string => `${worker}/${sync}`
  const backfills = new Map(
    syncs.filter((sync) => sync.pair?.role === 'backfill').map((sync) => [nameOf(sync, sync.sync), sync]),
  )
  const deltas = new Set(syncs.filter((sync) => sync.pair?.role === 'delta').map((sync) => nameOf(sync, sync.sync)))
  return syncs.flatMap((sync) => {
    if (sync.pair?.role === 'backfill' && deltas.has(nameOf(sync, sync.pair.with))) return []
    const backfill = sync.pair?.role === 'delta' ? backfills.get(nameOf(sync, sync.pair.with)) : undefined
    return backfill === undefined ? [sync] : [sync, backfill]
  })
}

const COLUMN_TITLES = ['Health', 'Sync', 'Coverage', 'Tidemark', 'Lag', 'Rows/s', 'Last cycle', 'Next']

function SyncRows({ syncs }: { syncs: readonly SyncDocument[] }) {
  const list = useRef<HTMLDivElement>(null)
  const { from, to, rowHeight } = useVisibleRows(list, syncs.length)
  return (
    <div className="syncs" role="table" aria-label="Syncs" aria-rowcount={syncs.length + 1}>
      <div role="rowgroup" className="syncs-head">
        <div role="row" aria-rowindex={1} className="sync-row">
          {COLUMN_TITLES.map((title) => (
            <div key={title} role="columnheader" className={`cell-${title.toLowerCase().replaceAll(/\W+/g, '-')}`}>
              {title}
            </div>
          ))}
        </div>
      </div>
      <div role="rowgroup" ref={list} className="syncs-body" style={{ height: syncs.length * rowHeight }}>
        {syncs.slice(from, to).map((sync, at) => (
          <SyncRow key={`${sync.worker}/${sync.sync}`} sync={sync} index={from + at} top={(from + at) * rowHeight} />
        ))}
      </div>
    </div>
  )
}

/** Unchanged documents are identical objects, so the row is not rendered again. */
const SyncRow = memo(({ sync, index, top }: { sync: SyncDocument; index: number; top: number }) => {
  const { lastCycle, pair } = sync
  const isBackfill = pair?.role === 'backfill'
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      className={isBackfill ? 'sync-row is-backfill' : 'sync-row'}
      style={{ top }}
    >
      <div role="cell" className="cell-health">
        <HealthLabel health={sync.health} isRunning={sync.isRunning} />
      </div>
      <div role="cell" className="cell-sync">
        <Link href={path`/syncs/${sync.worker}/${sync.sync}`} title={`${sync.worker} / ${sync.sync}`}>
          {sync.sync}
        </Link>
        <span className="quiet">
          {sync.mode ?? 'unknown'} · {formatSchedule(sync.schedule)}
        </span>
      </div>
      <div role="cell" className="cell-coverage">
        <CoverageBar coverage={sync.coverage} completeSince={isBackfill ? null : sync.completeSince} />
      </div>
      <div role="cell" className="cell-tidemark" data-title="Tidemark">
        <span>
          <Tidemark sync={sync} />
        </span>
        <span className="quiet">
          v{sync.version}
          {sync.state !== null && ` #${sync.state.digest8.slice(0, 6)}`}
        </span>
      </div>
      <div role="cell" className="cell-lag" data-title="Lag">
        {sync.completeSince === null || isBackfill ? (
          <span className="quiet" title={isBackfill ? 'The lag is shown at its delta.' : undefined}>
            –
          </span>
        ) : (
          <Elapsed at={sync.completeSince} />
        )}
      </div>
      <div role="cell" className="cell-rows-s" data-title="Rows/s">
        <RowsPerSecond sync={sync} />
      </div>
      <div role="cell" className="cell-last-cycle" data-title="Last cycle">
        {lastCycle === null ? (
          <span className="quiet">never ran</span>
        ) : (
          <>
            <span>
              {lastCycle.endedAt === null ? (
                sync.isRunning ? (
                  <>
                    running,{' '}
                    {sync.coverage.progress === null
                      ? `page ${lastCycle.pages}`
                      : `${Math.round(sync.coverage.progress * 100)} %`}
                  </>
                ) : (
                  'interrupted'
                )
              ) : (
                <>
                  {lastCycle.error === null
                    ? (lastCycle.endReason ?? lastCycle.stopReason)?.replaceAll('_', ' ')
                    : 'failed'}{' '}
                  <TimeAgo at={lastCycle.endedAt} />
                </>
              )}
            </span>
            {lastCycle.error === null ? (
              <CycleCounts cycle={lastCycle} />
            ) : (
              <span className="bad" title={lastCycle.error.message}>
                {lastCycle.error.code}
              </span>
            )}
          </>
        )}
      </div>
      <div role="cell" className="cell-next" data-title="Next">
        <NextRun sync={sync} />
      </div>
    </div>
  )
})

export function Tidemark({ sync: { tidemark, completeSince } }: { sync: SyncDocument }) {
  if (tidemark !== null && !tidemark.startsWith('#')) return <Timestamp at={tidemark} />
  // Without source timestamps: the start of the last complete cycle.
  return completeSince === null ? <span className="quiet">not yet</span> : <Timestamp at={completeSince} />
}

function RowsPerSecond({ sync }: { sync: SyncDocument }) {
  const now = useNow()
  const value = computeRowsPerSecond(sync.lastCycle, now)
  return value === null ? (
    <span className="quiet">–</span>
  ) : (
    <span className={sync.isRunning ? '' : 'quiet'}>{formatCompact(value)}</span>
  )
}

export function NextRun({ sync: { isRunning, next } }: { sync: SyncDocument }) {
  const now = useNow()
  if (isRunning) return <>running</>
  if (next === null) return <span className="quiet">–</span>
  if (next.waitingFor !== undefined) return <span className="quiet">waiting for {next.waitingFor.join(', ')}</span>
  if (next.at === null) return <span className="quiet">{next.why}</span>
  return Date.parse(next.at) <= now ? <>due now</> : <TimeAgo at={next.at} />
}

function NoSyncs() {
  return (
    <EmptyState title="No syncs yet">
      <p>
        This worker declares no syncs. Add one with <code>worker.sync(…)</code> or <code>worker.track(…)</code> in your
        worker file.
      </p>
    </EmptyState>
  )
}
