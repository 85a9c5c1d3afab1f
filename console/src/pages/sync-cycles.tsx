import { Fragment, useId, useState } from 'react'
import type { CycleDocument } from '../../../src/server/console/documents.ts'
import { useNow } from '../clock.ts'
import { CycleStrip } from '../components/cycle-strip.tsx'
import { EmptyState, MessageText } from '../components/query-states.tsx'
import { Timestamp } from '../components/time.tsx'
import {
  computeRowsPerSecond,
  countDeleted,
  countLanded,
  formatCompact,
  formatCount,
  formatDuration,
} from '../format.ts'

/** The cycles on a time axis, and as a table whose rows open. */
export function SyncCycles({ cycles, from }: { cycles: readonly CycleDocument[]; from: number }) {
  const [opened, setOpened] = useState<number | null>(null)
  if (cycles.length === 0)
    return <EmptyState title="No cycles yet">A cycle starts by its schedule, or with “Run now”.</EmptyState>
  const show = (cycle: number): void => {
    setOpened(cycle)
    requestAnimationFrame(() => {
      const button = document.querySelector<HTMLElement>(`[data-cycle="${cycle}"]`)
      button?.scrollIntoView({ block: 'nearest' })
      button?.focus()
    })
  }
  return (
    <>
      <CycleStrip cycles={cycles} from={findStart(cycles, from)} onOpen={show} />
      <table className="data-table cycles" aria-label="Cycles, newest first">
        <thead>
          <tr>
            {COLUMNS.map(({ title, isNumber }) => (
              <th key={title} scope="col" className={isNumber ? 'number' : ''}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {cycles.map((cycle) => (
            <CycleRow
              key={cycle.cycle}
              cycle={cycle}
              isOpen={cycle.cycle === opened}
              onToggle={() => setOpened(cycle.cycle === opened ? null : cycle.cycle)}
            />
          ))}
        </tbody>
      </table>
    </>
  )
}

/** The axis begins shortly before the oldest cycle of the list: nothing is known about the time before it. */
function findStart(cycles: readonly CycleDocument[], from: number): number {
  const [first, last] = [cycles.at(-1), cycles[0]].map((cycle) => Date.parse(cycle?.startedAt ?? ''))
  if (first === undefined || last === undefined) return from
  return Math.max(from, first - Math.max(10_000, (last - first) / 20))
}

const COLUMNS = [
  { title: 'Cycle' },
  { title: 'Started' },
  { title: 'Duration', isNumber: true },
  { title: 'Pages', isNumber: true },
  { title: 'Written', isNumber: true },
  { title: 'Unchanged', isNumber: true },
  { title: 'Deleted', isNumber: true },
  { title: 'Quarantined', isNumber: true },
  { title: 'Retries', isNumber: true },
  { title: 'Waited', isNumber: true },
  { title: 'Result' },
] as ReadonlyArray<{ readonly title: string; readonly isNumber?: boolean }>

function CycleRow({ cycle, isOpen, onToggle }: { cycle: CycleDocument; isOpen: boolean; onToggle: () => void }) {
  const { counts, trigger, startedAt, pages, retries, waitedMs } = cycle
  const id = useId()
  const cells = [
    <button
      key="cycle"
      type="button"
      className="disclosure"
      data-cycle={cycle.cycle}
      aria-expanded={isOpen}
      aria-controls={isOpen ? id : undefined}
      onClick={onToggle}
    >
      <span className="whole">
        {cycle.cycle} <span className="quiet">{trigger}</span>
      </span>
    </button>,
    <Timestamp key="started" at={startedAt} />,
    <Duration key="duration" cycle={cycle} />,
    formatCount(pages),
    <CountCell key="written" value={countLanded(counts)} tone="plus" />,
    <CountCell key="unchanged" value={counts.unchanged} />,
    <CountCell key="deleted" value={countDeleted(counts)} tone="minus" />,
    <CountCell key="quarantined" value={counts.quarantined} tone="bad" />,
    <CountCell key="retries" value={retries} />,
    waitedMs === 0 ? <span className="quiet">–</span> : formatDuration(waitedMs),
    <CycleResult key="result" cycle={cycle} />,
  ]
  return (
    <>
      <tr>
        {COLUMNS.map(({ title, isNumber }, at) => (
          <td key={title} className={isNumber ? 'number' : ''} data-title={title}>
            {cells[at]}
          </td>
        ))}
      </tr>
      {isOpen && (
        <tr id={id} className="cycle-detail">
          <td colSpan={COLUMNS.length} data-title="">
            <CycleDetail cycle={cycle} />
          </td>
        </tr>
      )}
    </>
  )
}

function CountCell({ value, tone }: { value: number; tone?: 'plus' | 'minus' | 'bad' }) {
  return value === 0 ? (
    <span className="quiet">0</span>
  ) : (
    <span className={tone === undefined ? '' : `count-${tone}`}>{formatCompact(value)}</span>
  )
}

function Duration({ cycle: { startedAt, endedAt } }: { cycle: CycleDocument }) {
  const now = useNow()
  return <>{formatDuration((endedAt === null ? now : Date.parse(endedAt)) - Date.parse(startedAt))}</>
}

function CycleResult({ cycle: { stopReason, endReason, error, endedAt } }: { cycle: CycleDocument }) {
  if (endedAt === null) return <span className="tag tag-now">running</span>
  if (error !== null)
    return (
      <span className="ending">
        <span className="tag tag-bad">{stopReason}</span>{' '}
        <span className="bad whole" title={error.message}>
          {error.code}
        </span>
      </span>
    )
  return (
    <span className="ending">
      <span className="tag">{stopReason}</span>
      {endReason !== null && (
        <span className={endReason.startsWith('switched') ? 'tag tag-warn' : 'quiet'}>
          {endReason.replaceAll('_', ' ')}
        </span>
      )}
    </span>
  )
}

const STOP_REASONS: Record<NonNullable<CycleDocument['stopReason']>, string> = {
  complete: 'The cycle read everything to its end.',
  max_pages: 'The cycle reached its limit of pages. The next one continues after the last page.',
  timeout: 'The cycle reached its limit of time. The next one continues after the last page.',
  cancelled: 'The cycle was cancelled. The next one continues after the last page.',
  paused: 'The sync was paused. After it is resumed, it continues after the last page.',
  error: 'The cycle ended with an error. The next one continues after the last page.',
  blocked: 'The sweep was refused, because it would have deleted too many rows. Nothing was deleted.',
  lease_lost: 'Another process took over the sync. Nothing of the unfinished page was written.',
  unknown: 'The result of the last commit is not known. The next cycle reads it from the store.',
}

function CycleDetail({ cycle }: { cycle: CycleDocument }) {
  const now = useNow()
  const { stopReason, endReason, error, mode, counts, waitedMs, startedAt, endedAt, pages } = cycle
  const ms = Math.max(1, (endedAt === null ? now : Date.parse(endedAt)) - Date.parse(startedAt))
  const rate = computeRowsPerSecond(cycle, now)
  const facts: ReadonlyArray<readonly [string, string]> = [
    ['Mode', mode],
    ['Speed', rate === null ? '–' : `${formatCompact(rate)} records per second`],
    ['Waited', waitedMs === 0 ? 'not at all' : `${formatDuration(waitedMs)}, ${Math.round((waitedMs / ms) * 100)} %`],
    ['Per page', pages === 0 ? '–' : formatDuration(ms / pages)],
    ['Older than stored', formatCount(counts.stale)],
    ['Deletes of missing keys', formatCount(counts.missing)],
  ]
  return (
    <div className="cycle-facts">
      {error !== null && (
        <div className="failure">
          <strong>{error.code}</strong>
          <p>{error.message}</p>
          <p className="next-step">
            <b>Next step</b> <MessageText text={error.advice} />
          </p>
        </div>
      )}
      <p>
        {stopReason === null
          ? endedAt === null
            ? 'The cycle runs, or its process ended without a report.'
            : ''
          : STOP_REASONS[stopReason]}{' '}
        {endReason !== null && (
          <span className="breakable">The source ended it with “{endReason.replaceAll('_', ' ')}”.</span>
        )}
      </p>
      <dl>
        {facts.map(([name, value]) => (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </Fragment>
        ))}
      </dl>
    </div>
  )
}
