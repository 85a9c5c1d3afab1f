import { useEffect, useRef, useState, type KeyboardEvent } from 'react'
import uPlot from 'uplot'
import { formatStep } from '../format.ts'

const HEIGHT = 132
/** Fired on the group of charts: all of them show the values of this step. */
const STEP_EVENT = 'tidemark-step'

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
  /** The value to show while no step is selected; by default the latest. */
  readonly summary?: string
}

/** A chart with its values under the pointer, and by the arrow keys. */
export function TimeChart(props: ChartProps) {
  const { title, unit, from, stepMs, values, format, tone, emptyMax, bars = false, summary } = props
  const container = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const [step, setStep] = useState<number | null>(null)
  const start = Date.parse(from)
  const times = values.map((_, at) => (start + (at + (bars ? 0.5 : 1)) * stepMs) / 1_000)
  // An empty bar would be drawn as a line.
  const drawn = bars ? values.map((value) => (value === 0 ? null : value)) : values
  const data = [times, drawn] as unknown as uPlot.AlignedData
  const latest = useRef(data)
  latest.current = data

  useEffect(() => {
    const element = container.current
    const group = element?.closest('.charts')
    if (element === null || group == null) return
    const announceStep = (at: number | null): void =>
      void group.dispatchEvent(new CustomEvent(STEP_EVENT, { detail: at }))
    const follow = (event: Event): void => setStep((event as CustomEvent<number | null>).detail)
    group.addEventListener(STEP_EVENT, follow)
    const draw = (): void => {
      plot.current?.destroy()
      plot.current = new uPlot(
        buildPlotOptions(element, { format, tone, emptyMax, bars }, announceStep),
        latest.current,
        element,
      )
    }
    draw()
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }))
    resized.observe(element)
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    scheme.addEventListener('change', draw)
    addEventListener('tidemark-theme', draw)
    return () => {
      group.removeEventListener(STEP_EVENT, follow)
      resized.disconnect()
      scheme.removeEventListener('change', draw)
      removeEventListener('tidemark-theme', draw)
      plot.current?.destroy()
      plot.current = null
    }
    // The other options are constant.
  }, [tone, bars])
  useEffect(() => plot.current?.setData(data), [from, values])

  const shown = step === null ? null : Math.min(step, values.length - 1)
  const describe = (at: number): string => {
    const value = values[at] ?? null
    return `${formatStep(start + at * stepMs, stepMs)}: ${value === null ? 'no data' : format(value)}`
  }
  const last = values.findLast((value) => value !== null) ?? null
  const move = (event: KeyboardEvent): void => {
    const to = STEPS_BY_KEY[event.key]?.(shown ?? values.length - 1, values.length - 1)
    if (event.key !== 'Escape' && to === undefined) return
    event.preventDefault()
    const at = to === undefined ? null : Math.max(0, Math.min(values.length - 1, to))
    plot.current?.setCursor({ left: at === null ? -10 : plot.current.valToPos(times[at] ?? 0, 'x'), top: 0 })
    container.current?.closest('.charts')?.dispatchEvent(new CustomEvent(STEP_EVENT, { detail: at }))
  }
  return (
    <figure className="chart">
      <figcaption>
        <span className="chart-title">{title}</span> <span className="quiet">{unit}</span>
        <span className="chart-last">
          {shown !== null ? describe(shown) : (summary ?? (last === null ? '–' : format(last)))}
        </span>
      </figcaption>
      <div
        ref={container}
        className="chart-place"
        role="slider"
        tabIndex={0}
        aria-label={`${title}, ${unit}`}
        aria-valuemin={0}
        aria-valuemax={values.length - 1}
        aria-valuenow={shown ?? values.length - 1}
        aria-valuetext={describe(shown ?? values.length - 1)}
        onKeyDown={move}
      />
    </figure>
  )
}

const STEPS_BY_KEY: Readonly<Record<string, (at: number, last: number) => number>> = {
  ArrowLeft: (at) => at - 1,
  ArrowDown: (at) => at - 1,
  ArrowRight: (at) => at + 1,
  ArrowUp: (at) => at + 1,
  PageUp: (at) => at + 10,
  PageDown: (at) => at - 10,
  Home: () => 0,
  End: (_, last) => last,
}

function buildPlotOptions(
  element: HTMLElement,
  { format, tone, emptyMax, bars }: Pick<ChartProps, 'format' | 'tone' | 'emptyMax'> & { bars: boolean },
  onStep: (at: number | null) => void,
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
    cursor: {
      sync: { key: 'activity' },
      drag: { x: false, y: false },
      y: false,
      points: { size: 6 },
      bind: { mouseleave: (_, __, handler) => (event) => (onStep(null), handler(event)) },
    },
    hooks: {
      // A cursor that another chart moves has no event of its own.
      setCursor: [({ cursor: { idx, event } }) => void (event != null && idx != null && onStep(idx))],
    },
    scales: { y: { range: (_, __, maximum) => [0, maximum > 0 ? maximum * 1.15 : emptyMax] } },
    axes: [
      {
        ...axis,
        size: 24,
        space: 70,
        values: [
          [86_400, '{MMM} {D}', null, null, null, null, null, null, 0],
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
