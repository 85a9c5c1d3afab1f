import { useEffect, useRef } from 'react'
import uPlot from 'uplot'
import type { ActivityDocument } from '../../../src/server/console/documents.ts'
import { now } from '../clock.ts'
import { formatCompact, formatDuration } from '../format.ts'

const HEIGHT = 132

interface ChartProps {
  readonly title: string
  readonly unit: string
  readonly from: string
  readonly stepMs: number
  readonly values: readonly (number | null)[]
  readonly format: (value: number) => string
  readonly tone: 'accent' | 'ink' | 'alarm'
  /** Upper end of the axis while all values are 0. */
  readonly emptyMax: number
  readonly bars?: boolean
}

/** Three charts of the same time range with a shared cursor. */
export function ActivityCharts({ activity: { from, stepMs, rows, errors, lagMs } }: { activity: ActivityDocument }) {
  // The last step is incomplete, so its rate uses the elapsed time; at least a quarter step, because a shorter one is
  // too noisy.
  const begunMs = Math.max(stepMs / 4, Math.min(stepMs, now() - Date.parse(from) - (rows.length - 1) * stepMs))
  const perSecond = rows.map((value, at) => (value * 1_000) / (at === rows.length - 1 ? begunMs : stepMs))
  const shared = { from, stepMs }
  return (
    <div className="charts" role="group" aria-label="Activity over time" tabIndex={0}>
      <Chart
        {...shared}
        title="Throughput"
        unit="rows per second"
        values={perSecond}
        format={(value) => (value === 0 ? '0' : value < 10 ? value.toFixed(1) : formatCompact(value))}
        tone="accent"
        emptyMax={1}
      />
      <Chart
        {...shared}
        title="Lag"
        unit="of the slowest sync"
        values={lagMs}
        format={(value) => formatDuration(value).replace('0 ms', '0')}
        tone="ink"
        emptyMax={10_000}
      />
      <Chart
        {...shared}
        title="Errors"
        unit="failed cycles"
        values={errors}
        format={(value) => (Number.isInteger(value) ? formatCompact(value) : '')}
        tone="alarm"
        emptyMax={1}
        bars
      />
    </div>
  )
}

function Chart({ title, unit, from, stepMs, values, format, tone, emptyMax, bars = false }: ChartProps) {
  const container = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const last = values.findLast((value) => value !== null) ?? null
  const maximum = Math.max(0, ...values.map((value) => value ?? 0))
  const times = values.map((_, at) => Date.parse(from) / 1_000 + ((at + 1) * stepMs) / 1_000)
  const data = [times, values] as unknown as uPlot.AlignedData
  const latest = useRef(data)
  latest.current = data

  useEffect(() => {
    const element = container.current
    if (element === null) return
    const draw = (): void => {
      plot.current?.destroy()
      plot.current = new uPlot(buildPlotOptions(element, { format, tone, emptyMax, bars }), latest.current, element)
    }
    draw()
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }))
    resized.observe(element)
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    scheme.addEventListener('change', draw)
    addEventListener('tidemark-theme', draw)
    return () => {
      resized.disconnect()
      scheme.removeEventListener('change', draw)
      removeEventListener('tidemark-theme', draw)
      plot.current?.destroy()
      plot.current = null
    }
    // The other options are constant.
  }, [tone, bars])
  useEffect(() => plot.current?.setData(data), [from, values])

  return (
    <figure className="chart">
      <figcaption>
        <span className="chart-title">{title}</span> <span className="quiet">{unit}</span>
        <span className="chart-last">{last === null ? '–' : format(last)}</span>
      </figcaption>
      <div
        ref={container}
        className="chart-place"
        role="img"
        aria-label={`${title}, ${unit}: ${last === null ? 'no data yet' : `latest ${format(last)}, maximum ${format(maximum)}`}, over ${formatDuration(stepMs * values.length)}.`}
      />
    </figure>
  )
}

function buildPlotOptions(
  element: HTMLElement,
  { format, tone, emptyMax, bars }: Pick<ChartProps, 'format' | 'tone' | 'emptyMax'> & { bars: boolean },
): uPlot.Options {
  const style = getComputedStyle(element)
  const colour = (name: string): string => style.getPropertyValue(name).trim()
  const stroke = colour(`--${tone}`)
  const axis = {
    stroke: colour('--ink-3'),
    font: `11px ${style.fontFamily}`,
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
  }
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    padding: [8, 24, 0, 0],
    cursor: { sync: { key: 'activity' }, drag: { x: false, y: false }, y: false, points: { size: 6 } },
    scales: { y: { range: (_, __, maximum) => [0, maximum > 0 ? maximum * 1.15 : emptyMax] } },
    axes: [
      {
        ...axis,
        size: 24,
        space: 70,
        values: [
          [60, '{HH}:{mm}', null, null, null, null, null, null, 0],
          [1, '{HH}:{mm}:{ss}', null, null, null, null, null, null, 0],
        ],
      },
      { ...axis, size: 52, space: 34, values: (_, ticks) => ticks.map(format) },
    ],
    series: [
      {},
      {
        stroke,
        width: 1.5,
        fill: bars ? stroke : `color-mix(in srgb, ${stroke} 14%, transparent)`,
        points: { show: false },
        ...(bars && uPlot.paths.bars !== undefined && { paths: uPlot.paths.bars({ size: [0.7, 12] }) }),
      },
    ],
  }
}
