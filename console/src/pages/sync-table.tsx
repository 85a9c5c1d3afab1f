import { memo, useMemo, useRef, type KeyboardEvent, type MouseEvent } from 'react'
import { Link, useLocation } from 'wouter'
import type { SyncDocument } from '../../../src/server/console/documents.ts'
import { path } from '../api.ts'
import { useNow } from '../clock.ts'
import { CoverageBar } from '../components/coverage-bar.tsx'
import { CycleCounts } from '../components/cycle-counts.tsx'
import { HealthLabel } from '../components/health-label.tsx'
import { Elapsed, TimeAgo, Timestamp } from '../components/time.tsx'
import { computeRowsPerSecond, formatCompact, formatCount, formatSchedule, pluralize } from '../format.ts'
import type { GroupItem, ListItem, SortColumn, SyncItem } from '../sync-list.ts'
import { topOf, useVisibleRows } from '../visible-rows.ts'

const COLUMN_TITLES: Record<SortColumn, string> = {
  status: 'Status',
  sync: 'Sync',
  coverage: 'Coverage',
  lag: 'Lag',
  rows: 'Rows',
  last: 'Last cycle',
  error: 'Last error',
  next: 'Next',
}

interface SortState {
  readonly sort: SortColumn
  readonly isDescending: boolean
}

export function SyncTable({
  items,
  ownTenant,
  sort,
  onSort,
}: {
  items: readonly ListItem[]
  /** The syncs of other tenants have no page here. */
  ownTenant: string
  sort: SortState
  onSort: (sort: SortState) => void
}) {
  const list = useRef<HTMLDivElement>(null)
  const [, go] = useLocation()
  const headsBefore = useMemo(() => {
    let heads = 0
    return items.map(({ kind }) => (kind === 'group' ? heads++ : heads))
  }, [items])
  const { from, to, rowHeight, headHeight } = useVisibleRows(list, headsBefore)
  const heights = { rowHeight, headHeight }
  const total = items.length
  const heads = items.reduce((sum, { kind }) => sum + (kind === 'group' ? 1 : 0), 0)

  const open = (event: MouseEvent): void => {
    if ((event.target as Element).closest('a, button') !== null || getSelection()?.isCollapsed === false) return
    const link = (event.target as Element).closest('[role=row]')?.querySelector('a')
    if (link == null) return
    if (event.ctrlKey || event.metaKey) window.open(link.href, '_blank')
    else go(link.pathname.replace(/^\/console/, ''))
  }
  const moveFocus = (event: KeyboardEvent): void => {
    const by = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 }[event.key]
    const row = (event.target as Element).closest<HTMLElement>('[data-at]')
    if (by === undefined || row === null || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    let at = Number(row.dataset['at']) + by
    while (items[at]?.kind === 'group') at += by
    if (items[at] === undefined) return
    const find = () => list.current?.querySelector<HTMLElement>(`[data-at="${at}"] a`)
    if (find() == null) {
      // The row is drawn after the list has scrolled to it.
      const top = (list.current?.getBoundingClientRect().top ?? 0) + scrollY + topOf(headsBefore, at, heights)
      scrollTo(0, top - innerHeight / 2)
    }
    focusWhenDrawn(find)
  }
  return (
    <>
      <label className="field sort-field">
        Sort by{' '}
        <select
          value={sort.sort}
          onChange={(event) => onSort({ sort: event.target.value as SortColumn, isDescending: false })}
        >
          {Object.entries(COLUMN_TITLES).map(([column, title]) => (
            <option key={column} value={column}>
              {title}
            </option>
          ))}
        </select>
        <button
          type="button"
          aria-label={sort.isDescending ? 'Sort ascending' : 'Sort descending'}
          onClick={() => onSort({ ...sort, isDescending: !sort.isDescending })}
        >
          {sort.isDescending ? '↓' : '↑'}
        </button>
      </label>
      <div className="syncs" role="table" aria-label="Syncs" aria-rowcount={total + 1}>
        <div role="rowgroup" className="syncs-head">
          <div role="row" aria-rowindex={1} className="sync-row">
            {(Object.keys(COLUMN_TITLES) as SortColumn[]).map((column) => (
              <ColumnHead key={column} column={column} sort={sort} onSort={onSort} />
            ))}
          </div>
        </div>
        <div
          role="rowgroup"
          ref={list}
          className="syncs-body"
          style={{ height: heads * headHeight + (total - heads) * rowHeight }}
          onClick={open}
          onKeyDown={moveFocus}
        >
          {items.slice(from, to).map((item, index) => {
            const at = from + index
            const top = topOf(headsBefore, at, heights)
            return item.kind === 'group' ? (
              <GroupRow key={`group ${item.name}`} group={item} at={at} top={top} />
            ) : (
              <SyncRow
                key={`${item.sync.tenant}/${item.sync.worker}/${item.sync.sync}`}
                sync={item.sync}
                condition={item.condition}
                rows={item.rows}
                isBelowDelta={item.isBelowDelta}
                isOwn={item.sync.tenant === ownTenant}
                at={at}
                top={top}
              />
            )
          })}
        </div>
      </div>
    </>
  )
}

const FRAMES_MAX = 10

/** The row is drawn after the scroll event, one or two frames later. */
function focusWhenDrawn(find: () => HTMLElement | null | undefined, frames = FRAMES_MAX): void {
  requestAnimationFrame(() => {
    const link = find()
    if (link != null) link.focus()
    else if (frames > 0) focusWhenDrawn(find, frames - 1)
  })
}

function ColumnHead({
  column,
  sort,
  onSort,
}: {
  column: SortColumn
  sort: SortState
  onSort: (sort: SortState) => void
}) {
  const isSorted = sort.sort === column
  return (
    <div
      role="columnheader"
      className={`cell-${column}`}
      aria-sort={isSorted ? (sort.isDescending ? 'descending' : 'ascending') : 'none'}
    >
      <button
        type="button"
        className="sort-button"
        onClick={() => onSort({ sort: column, isDescending: isSorted && !sort.isDescending })}
      >
        {COLUMN_TITLES[column]}
        <span className="sort-mark" aria-hidden="true">
          {isSorted ? (sort.isDescending ? '↓' : '↑') : ''}
        </span>
      </button>
    </div>
  )
}

function GroupRow({ group: { name, syncs, failing, late }, at, top }: { group: GroupItem; at: number; top: number }) {
  return (
    <div role="row" aria-rowindex={at + 2} className="group-row" style={{ top }}>
      <div role="cell" aria-colspan={8}>
        <b className="clip" title={name}>
          {name === '' ? 'none' : name}
        </b>
        <span className="quiet">{pluralize(syncs, 'sync')}</span>
        {failing > 0 && <span className="tag tag-bad">{failing} failing</span>}
        {late > 0 && <span className="tag tag-warn">{late} late</span>}
      </div>
    </div>
  )
}

interface SyncRowProps extends Omit<SyncItem, 'kind'> {
  readonly isOwn: boolean
  readonly at: number
  readonly top: number
}

/** Unchanged documents are identical objects, so the row is not rendered again. */
const SyncRow = memo(({ sync, condition, rows, isBelowDelta, isOwn, at, top }: SyncRowProps) => {
  const { lastError, failures, pair } = sync
  const isBackfill = pair?.role === 'backfill'
  const name = `${isOwn ? '' : `${sync.tenant} / `}${sync.worker} / ${sync.sync}`
  return (
    <div
      role="row"
      aria-rowindex={at + 2}
      data-at={at}
      className={`sync-row${isBelowDelta ? ' is-backfill' : ''}${isOwn ? ' is-link' : ''}`}
      style={{ top }}
    >
      <div role="cell" className="cell-status">
        {condition === 'late' ? (
          <span className="health health-warning">
            <span className="health-dot" aria-hidden="true" />
            Late
          </span>
        ) : (
          <HealthLabel health={sync.health} isRunning={sync.isRunning} />
        )}
      </div>
      <div role="cell" className="cell-sync">
        {isOwn ? (
          <Link href={path`/syncs/${sync.worker}/${sync.sync}`} title={name}>
            {sync.sync}
          </Link>
        ) : (
          <b title={name}>{sync.sync}</b>
        )}
        <span className="quiet">
          {isOwn ? '' : `${sync.tenant} · `}
          {sync.worker} · {sync.mode ?? 'unknown'} · {formatSchedule(sync.schedule)}
        </span>
      </div>
      <div role="cell" className="cell-coverage">
        <CoverageBar coverage={sync.coverage} completeSince={isBackfill ? null : sync.completeSince} />
      </div>
      <div role="cell" className="cell-lag" data-title="Lag">
        {sync.completeSince === null || isBackfill ? (
          <span className="quiet" title={isBackfill ? 'The lag is shown at its delta.' : undefined}>
            –
          </span>
        ) : (
          <>
            <span className={condition === 'late' ? 'count-bad' : ''}>
              <Elapsed at={sync.completeSince} />
            </span>
            <span className="quiet" title="The tidemark: the copy is complete up to here.">
              <Tidemark sync={sync} />
            </span>
          </>
        )}
      </div>
      <div role="cell" className="cell-rows" data-title="Rows">
        <span>{rows === null ? <span className="quiet">–</span> : formatCompact(rows)}</span>
        <RowsPerSecond sync={sync} />
      </div>
      <div role="cell" className="cell-last" data-title="Last cycle">
        <LastCycle sync={sync} />
      </div>
      <div role="cell" className="cell-error" data-title="Last error">
        {failures === 0 || lastError === null ? (
          <span className="quiet">–</span>
        ) : (
          <>
            <span className="bad" title={lastError.message}>
              {lastError.code}
            </span>
            <span className="quiet">
              {failures === 1 ? '' : `${formatCount(failures)}×, `}
              <TimeAgo at={lastError.at} />
            </span>
          </>
        )}
      </div>
      <div role="cell" className="cell-next" data-title="Next">
        <NextRun sync={sync} />
      </div>
    </div>
  )
})

function LastCycle({ sync: { lastCycle, isRunning, coverage } }: { sync: SyncDocument }) {
  if (lastCycle === null) return <span className="quiet">never ran</span>
  const { endedAt, error, endReason, stopReason, pages } = lastCycle
  const progress = coverage.progress === null ? `page ${pages}` : `${Math.round(coverage.progress * 100)} %`
  return (
    <>
      <span>
        {endedAt === null ? (
          isRunning ? (
            `running, ${progress}`
          ) : (
            'interrupted'
          )
        ) : (
          <>
            {error === null ? (endReason ?? stopReason)?.replaceAll('_', ' ') : 'failed'} <TimeAgo at={endedAt} />
          </>
        )}
      </span>
      <CycleCounts cycle={lastCycle} />
    </>
  )
}

export function Tidemark({ sync: { tidemark, completeSince } }: { sync: SyncDocument }) {
  if (tidemark !== null && !tidemark.startsWith('#')) return <Timestamp at={tidemark} />
  // Without source timestamps: the start of the last complete cycle.
  return completeSince === null ? <span className="quiet">not yet</span> : <Timestamp at={completeSince} />
}

function RowsPerSecond({ sync }: { sync: SyncDocument }) {
  const now = useNow()
  const value = sync.isRunning ? computeRowsPerSecond(sync.lastCycle, now) : null
  return value === null ? null : <span className="quiet">{formatCompact(value)}/s</span>
}

export function NextRun({ sync: { isRunning, next } }: { sync: SyncDocument }) {
  const now = useNow()
  if (isRunning) return <>running</>
  if (next === null) return <span className="quiet">–</span>
  if (next.waitingFor !== undefined) return <span className="quiet">waiting for {next.waitingFor.join(', ')}</span>
  if (next.at === null) return <span className="quiet">{next.why}</span>
  return Date.parse(next.at) <= now ? <>due now</> : <TimeAgo at={next.at} />
}
