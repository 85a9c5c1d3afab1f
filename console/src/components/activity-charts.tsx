import type { ActivityDocument, ActivityRange } from '../../../src/server/console/documents.ts'
import { now } from '../clock.ts'
import { formatCompact, formatDuration, formatCount, pluralize } from '../format.ts'
import { TimeChart } from './time-chart.tsx'

const RANGE_LABELS: Record<ActivityRange, string> = { '1h': '1 hour', '24h': '24 hours', '7d': '7 days' }

export function RangeSwitch({
  ranges,
  range,
  onRange,
}: {
  ranges: readonly ActivityRange[]
  range: ActivityRange
  onRange: (range: ActivityRange) => void
}) {
  return (
    <div className="ranges" role="group" aria-label="Time range of the charts">
      {ranges.map((one) => (
        <button
          key={one}
          type="button"
          className="small"
          aria-pressed={one === range}
          title={RANGE_LABELS[one]}
          onClick={() => onRange(one)}
        >
          {one.replace('h', ' h').replace('d', ' d')}
        </button>
      ))}
    </div>
  )
}

/** Charts of the same time range with a shared cursor. */
export function ActivityCharts({ activity }: { activity: ActivityDocument }) {
  const { from, stepMs, rows, cycles, failed, lagMs, waitedMs } = activity
  // The last step is incomplete, so its rate uses the elapsed time; at least a quarter step, because a shorter one is
  // too noisy.
  const begunMs = Math.max(stepMs / 4, Math.min(stepMs, now() - Date.parse(from) - (rows.length - 1) * stepMs))
  const perSecond = rows.map((value, at) => (value * 1_000) / (at === rows.length - 1 ? begunMs : stepMs))
  const shared = { from, stepMs }
  const total = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0)
  return (
    <div className={lagMs === null ? 'charts two-charts' : 'charts'} role="group" aria-label="Activity over time">
      <TimeChart
        {...shared}
        title="Throughput"
        unit="rows per second"
        values={perSecond}
        format={formatRate}
        summary={`${formatCompact(total(rows))} rows`}
        tone="accent"
        emptyMax={1}
      />
      {lagMs !== null && (
        <TimeChart
          {...shared}
          title="Lag"
          unit="behind the source"
          values={lagMs}
          format={(value) => formatDuration(value).replace('0 ms', '0')}
          tone="ink"
          emptyMax={10_000}
        />
      )}
      <TimeChart
        {...shared}
        title="Failed cycles"
        unit={`of ${pluralize(total(cycles), 'cycle')}${total(waitedMs) === 0 ? '' : `, ${formatDuration(total(waitedMs))} waited`}`}
        values={failed}
        format={(value) => (Number.isInteger(value) ? formatCount(value) : '')}
        summary={`${formatCount(total(failed))} failed`}
        tone="alarm"
        emptyMax={1}
        bars
      />
    </div>
  )
}

function formatRate(value: number): string {
  return value === 0 ? '0' : value < 10 ? value.toFixed(value < 0.1 ? 2 : 1) : formatCompact(value)
}
