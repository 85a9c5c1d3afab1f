import type { CycleDocument } from '../../../src/server/console/documents.ts'
import { useNow } from '../clock.ts'
import { DataTable, type TableColumn } from '../components/data-table.tsx'
import { EmptyState } from '../components/query-states.tsx'
import { Timestamp } from '../components/time.tsx'
import { formatCompact, formatCount, formatDuration, countDeleted, countLanded } from '../format.ts'

/** All cycles on one time axis. */
export function CycleTimeline({ cycles }: { cycles: readonly CycleDocument[] }) {
  const now = useNow()
  if (cycles.length === 0)
    return <EmptyState title="No cycles yet">A cycle starts by its schedule, or with “Run now”.</EmptyState>
  const from = Math.min(...cycles.map(({ startedAt }) => Date.parse(startedAt)))
  const columns: readonly TableColumn<CycleDocument>[] = [
    {
      title: 'Cycle',
      cell: ({ cycle, trigger }) => (
        <span className="whole">
          {cycle} <span className="quiet">{trigger}</span>
        </span>
      ),
    },
    { title: 'Started', cell: ({ startedAt }) => <Timestamp at={startedAt} /> },
    { title: 'Duration', isWide: true, cell: (cycle) => <CycleSpan cycle={cycle} from={from} now={now} /> },
    { title: 'Pages', isNumber: true, cell: ({ pages }) => formatCount(pages) },
    { title: 'Written', isNumber: true, cell: ({ counts }) => <CountCell value={countLanded(counts)} tone="plus" /> },
    { title: 'Unchanged', isNumber: true, cell: ({ counts }) => <CountCell value={counts.unchanged} /> },
    { title: 'Deleted', isNumber: true, cell: ({ counts }) => <CountCell value={countDeleted(counts)} tone="minus" /> },
    { title: 'Quarantined', isNumber: true, cell: ({ counts }) => <CountCell value={counts.quarantined} tone="bad" /> },
    { title: 'Retries', isNumber: true, cell: ({ retries }) => <CountCell value={retries} /> },
    {
      title: 'Waited',
      isNumber: true,
      cell: ({ waitedMs }) => (waitedMs === 0 ? <span className="quiet">–</span> : formatDuration(waitedMs)),
    },
    { title: 'Result', cell: (cycle) => <CycleEnd cycle={cycle} /> },
  ]
  return <DataTable label="Cycles, newest first" columns={columns} rows={cycles} keyOf={({ cycle }) => cycle} />
}

function CountCell({ value, tone }: { value: number; tone?: 'plus' | 'minus' | 'bad' }) {
  return value === 0 ? (
    <span className="quiet">0</span>
  ) : (
    <span className={tone === undefined ? '' : `count-${tone}`}>{formatCompact(value)}</span>
  )
}

function CycleSpan({
  cycle: { startedAt, endedAt, error, waitedMs },
  from,
  now,
}: {
  cycle: CycleDocument
  from: number
  now: number
}) {
  const [begin, end] = [Date.parse(startedAt), endedAt === null ? now : Date.parse(endedAt)]
  const whole = Math.max(1, now - from)
  const x = ((begin - from) / whole) * 100
  const width = Math.max(0.8, ((end - begin) / whole) * 100)
  const waited = Math.min(width, (waitedMs / whole) * 100)
  return (
    <span className="span">
      <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
        <rect className="span-bed" width="100" height="10" />
        <rect
          className={error !== null ? 'span-bad' : endedAt === null ? 'span-now' : 'span-done'}
          x={Math.min(x, 99.2)}
          width={width}
          height="10"
        />
        {waited > 0 && <rect className="span-waited" x={Math.min(x, 99.2)} width={waited} y="7" height="3" />}
      </svg>
      <span>{formatDuration(end - begin)}</span>
    </span>
  )
}

function CycleEnd({ cycle: { stopReason, endReason, error, endedAt } }: { cycle: CycleDocument }) {
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
