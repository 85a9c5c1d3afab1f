import { useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import type {
  ActivityDocument,
  ActivityRange,
  FleetDocument,
  OverviewDocument,
  SyncDocument,
} from '../../../src/server/console/documents.ts'
import { get } from '../api.ts'
import { useCoarseNow } from '../clock.ts'
import { ActivityCharts, RangeSwitch } from '../components/activity-charts.tsx'
import { CoverageLegend } from '../components/coverage-bar.tsx'
import { EmptyState, QueryView } from '../components/query-states.tsx'
import { formatCount, pluralize } from '../format.ts'
import { useSession } from '../session.tsx'
import {
  CONDITION_LABELS,
  CONDITIONS,
  findCondition,
  groupCauses,
  type Cause,
  type Condition,
} from '../sync-condition.ts'
import { buildSyncList, GROUPINGS, SORT_COLUMNS, type SyncListView } from '../sync-list.ts'
import { useUrlState } from '../url-state.ts'
import { Attention } from './attention.tsx'
import { OtherTrouble } from './other-trouble.tsx'
import { SyncTable } from './sync-table.tsx'

const POLL_MS = 2_000
/** Reads the syncs of every tenant. */
const FLEET_POLL_MS = 15_000
const CHART_MS = 5_000
/** Counting rows is expensive. */
const ROWS_STALE_MS = 300_000
/** A longer range of all syncs reads too many records. */
const RANGES = ['1h', '24h'] as const

const VIEW_NAMES = [
  'search',
  'status',
  'worker',
  'tenant',
  'connection',
  'cause',
  'sort',
  'order',
  'group',
  'tenants',
] as const

export function OverviewPage() {
  const { session } = useSession()
  const [values, setValues] = useUrlState(VIEW_NAMES)
  const isFleet = values.tenants === 'all' && session.tenants > 1
  const overview = useQuery({
    queryKey: ['overview', isFleet],
    queryFn: async ({ signal }) =>
      isFleet
        ? (await get<{ data: FleetDocument }>('/console/api/fleet', signal)).data
        : (await get<{ data: OverviewDocument }>('/console/api/overview', signal)).data,
    refetchInterval: isFleet ? FLEET_POLL_MS : POLL_MS,
  })
  return (
    <QueryView of={overview} lines={10}>
      {(data) =>
        data.syncs.length === 0 ? (
          <NoSyncs />
        ) : (
          <Syncs
            syncs={data.syncs}
            isCut={'isCut' in data && data.isCut}
            isFleet={isFleet}
            values={values}
            setValues={setValues}
          />
        )
      }
    </QueryView>
  )
}

type Values = Readonly<Record<(typeof VIEW_NAMES)[number], string>>

function Syncs({
  syncs,
  isCut,
  isFleet,
  values,
  setValues,
}: {
  syncs: readonly SyncDocument[]
  isCut: boolean
  isFleet: boolean
  values: Values
  setValues: (change: Partial<Values>) => void
}) {
  const { session } = useSession()
  const now = useCoarseNow()
  const rowsOf = useRowCounts(session.tenant)
  const view = toView(values)
  const causes = useMemo(() => groupCauses(syncs, now), [syncs, now])
  const counts = useMemo(() => countConditions(syncs, now), [syncs, now])
  const viewKey = JSON.stringify(view)
  const items = useMemo(() => buildSyncList(syncs, view, rowsOf, now), [syncs, viewKey, rowsOf, now])
  const isFiltered = items.length === 0 || VIEW_NAMES.slice(0, 6).some((name) => values[name] !== '')
  const clear = (): void => setValues({ search: '', status: '', worker: '', tenant: '', connection: '', cause: '' })
  return (
    <>
      <section className="answer-section" aria-label="Summary">
        <Answer counts={counts} total={syncs.length} isFleet={isFleet} isCut={isCut} />
        <OtherTrouble />
      </section>
      <Attention
        causes={causes}
        ownTenant={session.tenant}
        onCause={(cause) => {
          clear()
          setValues({ cause })
        }}
      />
      {!isFleet && <ActivitySection />}
      <section aria-label="Syncs">
        <Filters syncs={syncs} counts={counts} values={values} setValues={setValues} causes={causes} />
        {items.length === 0 ? (
          <EmptyState title="No syncs match">
            <button type="button" onClick={clear}>
              Show all
            </button>
          </EmptyState>
        ) : (
          <>
            <SyncTable
              items={items}
              ownTenant={session.tenant}
              sort={view}
              onSort={({ sort, isDescending }) =>
                setValues({ sort: sort === 'status' ? '' : sort, order: isDescending ? 'desc' : '' })
              }
            />
            {isFiltered && (
              <p className="more" role="status">
                {formatCount(items.filter(({ kind }) => kind === 'sync').length)} of {pluralize(syncs.length, 'sync')}
                <button type="button" className="small" onClick={clear}>
                  Show all
                </button>
              </p>
            )}
          </>
        )}
      </section>
    </>
  )
}

/** Answers first: whether anything is broken. */
function Answer({
  counts,
  total,
  isFleet,
  isCut,
}: {
  counts: Readonly<Record<Condition, number>>
  total: number
  isFleet: boolean
  isCut: boolean
}) {
  const { error: failing, late, warning, initializing, paused } = counts
  const parts = [
    { count: failing, one: 'is failing', many: 'are failing' },
    { count: late, one: 'is late', many: 'are late' },
    { count: warning, one: 'has a warning', many: 'have a warning' },
  ]
    .filter(({ count }) => count > 0)
    .map(
      ({ count, one, many }, at) =>
        `${formatCount(count)}${at === 0 ? ` of ${pluralize(total, 'sync')}` : ''} ${count === 1 ? one : many}`,
    )
  const tone = failing > 0 ? 'error' : late + warning > 0 ? 'late' : 'fine'
  const rest = [
    ...(initializing > 0 ? [`${formatCount(initializing)} reading for the first time`] : []),
    ...(paused > 0 ? [`${formatCount(paused)} paused`] : []),
  ]
  return (
    <div className={`answer answer-${tone}`}>
      <h1>
        {parts.length === 0
          ? rest.length === 0
            ? `All ${pluralize(total, 'sync')} are current`.replace('All 1 sync are', 'The sync is')
            : 'No sync is failing or late'
          : joinWords(parts)}
      </h1>
      <p className="quiet">
        {[...rest, isFleet ? `all tenants${isCut ? ' (the first 500)' : ''}` : '']
          .filter((part) => part !== '')
          .join(' · ')}
      </p>
    </div>
  )
}

function joinWords(parts: readonly string[]): string {
  return parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`
}

function Filters({
  syncs,
  counts,
  values,
  setValues,
  causes,
}: {
  syncs: readonly SyncDocument[]
  counts: Readonly<Record<Condition, number>>
  values: Values
  setValues: (change: Partial<Values>) => void
  causes: readonly Cause[]
}) {
  const { session } = useSession()
  const choices = useMemo(
    () => ({
      worker: listChoices(syncs.map(({ worker }) => worker)),
      tenant: listChoices(syncs.map(({ tenant }) => tenant)),
      connection: listChoices(syncs.flatMap(({ connection }) => (connection === null ? [] : [connection.name]))),
    }),
    [syncs],
  )
  const groupings = GROUPINGS.filter((group) => group === 'status' || choices[group].length > 1)
  const cause = causes.find(({ key }) => key === values.cause)
  return (
    <div className="filters">
      <div className="bar">
        <div className="chips" role="group" aria-label="Filter by status">
          <button
            type="button"
            className="chip"
            aria-pressed={values.status === ''}
            onClick={() => setValues({ status: '' })}
          >
            All <b>{formatCount(syncs.length)}</b>
          </button>
          {CONDITIONS.filter((condition) => counts[condition] > 0).map((condition) => (
            <button
              key={condition}
              type="button"
              className="chip"
              aria-pressed={values.status === condition}
              onClick={() => setValues({ status: values.status === condition ? '' : condition })}
            >
              <span className={`health health-${CONDITION_TONES[condition]}`}>
                <span className="health-dot" aria-hidden="true" />
                {CONDITION_LABELS[condition]}
              </span>{' '}
              <b>{formatCount(counts[condition])}</b>
            </button>
          ))}
        </div>
        <CoverageLegend />
      </div>
      <div className="bar">
        <input
          type="search"
          placeholder="Search syncs  /"
          aria-label="Search syncs"
          value={values.search}
          onChange={(event) => setValues({ search: event.target.value })}
        />
        {(['worker', 'tenant', 'connection'] as const).map(
          (name) =>
            (choices[name].length > 1 || values[name] !== '') && (
              <Choice
                key={name}
                label={FILTER_LABELS[name]}
                all="all"
                value={values[name]}
                options={choices[name].map((one) => [one, one] as const)}
                onChange={(value) => setValues({ [name]: value })}
              />
            ),
        )}
        <Choice
          label="Group by"
          all="nothing"
          value={values.group}
          options={groupings.map((group) => [group, group] as const)}
          onChange={(group) => setValues({ group })}
        />
        {session.tenants > 1 && (
          <Choice
            label="Show"
            all="own tenant"
            value={values.tenants}
            options={[['all', 'all tenants']]}
            onChange={(tenants) => setValues({ tenants, tenant: '' })}
          />
        )}
        {values.cause !== '' && (
          <button type="button" className="chip" aria-pressed="true" onClick={() => setValues({ cause: '' })}>
            <span className="clip">{cause?.title ?? 'No sync has this problem any more'}</span>
            <span aria-hidden="true"> ×</span>
            <span className="hidden">: remove this filter</span>
          </button>
        )}
      </div>
    </div>
  )
}

const FILTER_LABELS = { worker: 'Worker', tenant: 'Tenant', connection: 'Connection' }

const CONDITION_TONES: Record<Condition, string> = {
  error: 'error',
  late: 'warning',
  warning: 'warning',
  initializing: 'initializing',
  healthy: 'healthy',
  paused: 'paused',
}

function Choice({
  label,
  all,
  value,
  options,
  onChange,
}: {
  label: string
  all: string
  value: string
  options: ReadonlyArray<readonly [value: string, label: string]>
  onChange: (value: string) => void
}) {
  return (
    <label className="field">
      {label}{' '}
      <select value={value} onChange={(event) => onChange(event.target.value)}>
        <option value="">{all}</option>
        {options.map(([one, text]) => (
          <option key={one} value={one}>
            {text}
          </option>
        ))}
        {value !== '' && !options.some(([one]) => one === value) && <option value={value}>{value}</option>}
      </select>
    </label>
  )
}

function ActivitySection() {
  const [range, setRange] = useState<ActivityRange>('1h')
  const activity = useQuery({
    queryKey: ['activity', range],
    queryFn: ({ signal }) => get<{ data: ActivityDocument }>(`/console/api/activity?range=${range}`, signal),
    refetchInterval: CHART_MS,
    placeholderData: (before) => before,
  })
  return (
    <section className="chart-section" aria-label="Activity">
      <div className="title-bar">
        <h2>Activity</h2>
        <RangeSwitch ranges={RANGES} range={range} onRange={setRange} />
      </div>
      <QueryView of={activity} lines={3}>
        {({ data }) => <ActivityCharts key={data.stepMs} activity={data} />}
      </QueryView>
    </section>
  )
}

/** Rows of the databases that a sync writes; unknown for other tenants. */
function useRowCounts(ownTenant: string): (sync: SyncDocument) => number | null {
  const databases = useQuery({
    queryKey: ['row-counts'],
    queryFn: ({ signal }) => get<{ data: Array<{ name: string; rows: number }> }>('/api/databases', signal),
    staleTime: ROWS_STALE_MS,
    refetchInterval: ROWS_STALE_MS,
  })
  const data = databases.data?.data
  return useMemo(() => {
    const rows = new Map(data?.map((database) => [database.name, database.rows]))
    return ({ tenant, databases: names }) => {
      if (tenant !== ownTenant || names.length === 0 || !names.some((name) => rows.has(name))) return null
      return names.reduce((sum, name) => sum + (rows.get(name) ?? 0), 0)
    }
  }, [data, ownTenant])
}

function countConditions(syncs: readonly SyncDocument[], now: number): Record<Condition, number> {
  const counts: Record<Condition, number> = { error: 0, late: 0, warning: 0, initializing: 0, healthy: 0, paused: 0 }
  for (const sync of syncs) counts[findCondition(sync, now)]++
  return counts
}

function listChoices(names: readonly string[]): readonly string[] {
  return [...new Set(names)].toSorted()
}

function toView({ search, status, worker, tenant, connection, cause, sort, order, group }: Values): SyncListView {
  return {
    search,
    worker,
    tenant,
    connection,
    cause,
    status: CONDITIONS.find((one) => one === status) ?? null,
    sort: SORT_COLUMNS.find((one) => one === sort) ?? 'status',
    isDescending: order === 'desc',
    group: GROUPINGS.find((one) => one === group) ?? null,
  }
}

function NoSyncs() {
  return (
    <>
      <h1 className="hidden">Overview</h1>
      <EmptyState title="No syncs yet">
        <p>
          This worker declares no syncs. Add one with <code>worker.sync(…)</code> or <code>worker.track(…)</code> in
          your worker file.
        </p>
      </EmptyState>
    </>
  )
}
