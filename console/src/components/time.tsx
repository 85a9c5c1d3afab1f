import { useNow } from '../clock.ts'
import { ago, clockTime, day, duration } from '../format.ts'

/** How long ago, or in how long; the moment itself on hover. */
export function Ago({ at }: { at: string }) {
  return <time dateTime={at} title={`${day(at)} ${clockTime(at)}`}>{ago(at, useNow())}</time>
}

/** The clock of today, the date as well for another day. */
export function Moment({ at }: { at: string }) {
  const isToday = day(at) === day(new Date(useNow()).toISOString())
  return <time dateTime={at} title={`${day(at)} ${clockTime(at)}`}>{isToday ? clockTime(at) : `${day(at)} ${clockTime(at).slice(0, 5)}`}</time>
}

export function Since({ at }: { at: string }) {
  return <>{duration(Math.max(0, Math.floor((useNow() - Date.parse(at)) / 1_000)) * 1_000).replace('0 ms', '0s')}</>
}
