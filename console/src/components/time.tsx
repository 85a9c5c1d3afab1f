import { useNow } from '../clock.ts'
import { formatAgo, formatTime, formatDate, formatDuration } from '../format.ts'

/** Relative time; the timestamp on hover. */
export function TimeAgo({ at }: { at: string }) {
  return (
    <time dateTime={at} title={`${formatDate(at)} ${formatTime(at)}`}>
      {formatAgo(at, useNow())}
    </time>
  )
}

/** The time for today, otherwise the date as well. */
export function Timestamp({ at }: { at: string }) {
  const isToday = formatDate(at) === formatDate(new Date(useNow()).toISOString())
  return (
    <time dateTime={at} title={`${formatDate(at)} ${formatTime(at)}`}>
      {isToday ? formatTime(at) : `${formatDate(at)} ${formatTime(at).slice(0, 5)}`}
    </time>
  )
}

export function Elapsed({ at }: { at: string }) {
  return (
    <>{formatDuration(Math.max(0, Math.floor((useNow() - Date.parse(at)) / 1_000)) * 1_000).replace('0 ms', '0s')}</>
  )
}
