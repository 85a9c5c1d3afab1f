import { useState, type KeyboardEvent, type PointerEvent } from 'react'
import type { CycleDocument } from '../../../src/server/console/documents.ts'
import { useNow } from '../clock.ts'
import { countDeleted, countLanded, formatCount, formatDuration, formatTick, formatTime, pluralize } from '../format.ts'

const TICKS = 6

/** Cycles on one time axis. The waiting part of each is marked. The values are read by pointer and by arrow keys. */
export function CycleStrip({
  cycles,
  from,
  onOpen,
}: {
  cycles: readonly CycleDocument[]
  from: number
  onOpen: (cycle: number) => void
}) {
  const now = useNow()
  const [selected, setSelected] = useState<number | null>(null)
  const span = Math.max(1_000, now - from)
  const bars = cycles
    .map((cycle) => {
      const [begin, end] = [Date.parse(cycle.startedAt), cycle.endedAt === null ? now : Date.parse(cycle.endedAt)]
      return { cycle, begin, end, ms: Math.max(1, end - begin) }
    })
    .filter(({ end }) => end >= from)
    .toReversed()
  const share = (time: number): number => (Math.max(0, time - from) / span) * 1_000
  const at = selected === null ? null : Math.min(selected, bars.length - 1)
  const shown = at === null ? undefined : bars[at]

  const follow = (event: PointerEvent<HTMLElement>): void => {
    const { left, width } = event.currentTarget.getBoundingClientRect()
    const time = from + ((event.clientX - left) / Math.max(1, width)) * span
    const distances = bars.map(({ begin, end }) => Math.max(0, begin - time, time - end))
    const nearest = distances.indexOf(Math.min(...distances))
    setSelected(nearest === -1 ? null : nearest)
  }
  const move = (event: KeyboardEvent): void => {
    const last = bars.length - 1
    const to = { ArrowLeft: (at ?? last + 1) - 1, ArrowRight: (at ?? last - 1) + 1, Home: 0, End: last }[event.key]
    if (event.key === 'Enter' && shown !== undefined) onOpen(shown.cycle.cycle)
    else if (event.key === 'Escape') setSelected(null)
    else if (to !== undefined) setSelected(Math.max(0, Math.min(last, to)))
    else return
    event.preventDefault()
  }
  return (
    <figure className="strip">
      <figcaption>
        <span className="chart-title">Timeline</span>{' '}
        <span className="quiet">
          {pluralize(bars.length, 'cycle')}
          {bars.some(({ cycle }) => cycle.waitedMs > 0) && ', waits in yellow'}
        </span>
        <span className="chart-last">{shown === undefined ? '' : describe(shown)}</span>
      </figcaption>
      <div
        className="strip-place"
        role="slider"
        tabIndex={0}
        aria-label="Cycles on a time axis. Press Enter to open one."
        aria-valuemin={0}
        aria-valuemax={Math.max(0, bars.length - 1)}
        aria-valuenow={at ?? Math.max(0, bars.length - 1)}
        aria-valuetext={shown === undefined ? pluralize(bars.length, 'cycle') : describe(shown)}
        onPointerMove={follow}
        onPointerLeave={() => setSelected(null)}
        onClick={() => shown !== undefined && onOpen(shown.cycle.cycle)}
        onKeyDown={move}
      >
        <svg viewBox="0 0 1000 30" preserveAspectRatio="none" aria-hidden="true">
          <rect className="span-bed" width="1000" height="30" />
          {bars.map(({ cycle, begin, end, ms }, index) => {
            const width = Math.max(2, share(end) - share(begin))
            const x = Math.min(share(begin), 1_000 - width)
            const waited = Math.min(1, cycle.waitedMs / ms)
            return (
              <g key={cycle.cycle} className={index === at ? 'is-selected' : ''}>
                <rect className={toneOf(cycle)} x={x} width={width} y="3" height="24" />
                {waited > 0 && (
                  <rect className="span-waited" x={x} width={width} y={27 - 24 * waited} height={24 * waited} />
                )}
              </g>
            )
          })}
        </svg>
      </div>
      <div className="strip-ticks" aria-hidden="true">
        {Array.from({ length: TICKS + 1 }, (_, tick) => (
          <span key={tick}>{formatTick(from + (span * tick) / TICKS, span)}</span>
        ))}
      </div>
    </figure>
  )
}

function toneOf({ error, endedAt }: CycleDocument): string {
  return error !== null ? 'span-bad' : endedAt === null ? 'span-now' : 'span-done'
}

function describe({ cycle, ms }: { cycle: CycleDocument; ms: number }): string {
  const { error, stopReason, waitedMs, counts } = cycle
  return [
    `${formatTime(cycle.startedAt)} cycle ${cycle.cycle}`,
    error?.code ?? stopReason ?? 'running',
    formatDuration(ms),
    `${formatCount(countLanded(counts))} written`,
    ...(countDeleted(counts) > 0 ? [`${formatCount(countDeleted(counts))} deleted`] : []),
    ...(waitedMs > 0 ? [`waited ${formatDuration(waitedMs)}`] : []),
  ].join(' · ')
}
