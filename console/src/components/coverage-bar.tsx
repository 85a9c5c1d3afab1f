import type { Coverage } from '../../../src/runner/coverage.ts'
import { useNow } from '../clock.ts'
import { formatDuration } from '../format.ts'

/** Draws the coverage up to the tidemark; the part right of it is the lag. */
export function CoverageBar({
  coverage,
  completeSince,
  large = false,
}: {
  coverage: Coverage
  completeSince: string | null
  large?: boolean
}) {
  const lagMs = Math.max(0, useNow() - (completeSince === null ? 0 : Date.parse(completeSince)))
  const lagShare = completeSince === null ? 0 : computeLagShare(lagMs)
  let at = 0
  const parts = coverage.parts.map((part) => {
    const x = at
    at += part.share * (100 - lagShare)
    return { ...part, x, width: at - x }
  })
  const words = `${coverage.words}${completeSince === null ? '' : ` Changes of the last ${formatDuration(Math.floor(lagMs / 1_000) * 1_000)} may be missing.`}`
  return (
    <svg
      className={large ? 'coverage large' : 'coverage'}
      role="img"
      aria-label={words}
      preserveAspectRatio="none"
      viewBox="0 0 100 20"
    >
      <title>{words}</title>
      <rect className="coverage-bed" width="100" height="20" />
      {parts.map((part) => (
        <rect key={part.x} className={`coverage-${part.state}`} x={part.x} width={part.width} height="20" />
      ))}
      {parts
        .filter(({ state }) => state === 'hole')
        .map((part) => (
          <line
            key={part.x}
            className="coverage-dry"
            x1={part.x + 0.8}
            x2={part.x + part.width - 0.8}
            y1="10"
            y2="10"
          />
        ))}
      {parts
        .filter(({ state }) => state === 'filling')
        .map((part) => (
          <Stripes key={part.x} x={part.x} width={part.width} />
        ))}
      {parts.map(
        (part) =>
          part.edge !== undefined && (
            <line
              key={part.x}
              className={`coverage-edge coverage-edge-${part.edge}`}
              x1={computeEdgeX(part)}
              x2={computeEdgeX(part)}
              y1="0"
              y2="20"
            />
          ),
      )}
      {lagShare > 0 && <line className="coverage-tidemark" x1={100 - lagShare} x2={100 - lagShare} y1="0" y2="20" />}
    </svg>
  )
}

/** Logarithmic: seconds are a sliver, days a fifth. */
function computeLagShare(lagMs: number): number {
  return Math.min(22, 1.5 + 3.2 * Math.log10(1 + lagMs / 1_000))
}

function computeEdgeX({ edge, x, width }: { edge?: 'head' | 'tail' | 'anchor'; x: number; width: number }): number {
  return edge === 'head' ? x + width : x
}

function Stripes({ x, width }: { x: number; width: number }) {
  const lines = Math.max(1, Math.floor(width / 3))
  return (
    <g className="coverage-stripes">
      {Array.from({ length: lines }, (_, n) => (
        <line
          key={n}
          x1={x + (n * width) / lines + 0.4}
          x2={x + (n * width) / lines + Math.min(2.2, width / lines)}
          y1="20"
          y2="0"
        />
      ))}
    </g>
  )
}

export function CoverageLegend() {
  return (
    <ul className="legend" aria-label="Legend">
      <li>
        <span className="swatch swatch-proven" aria-hidden="true" />
        complete
      </li>
      <li>
        <span className="swatch swatch-filling" aria-hidden="true" />
        in progress
      </li>
      <li>
        <span className="swatch swatch-hole" aria-hidden="true" />
        missing
      </li>
      <li>
        <span className="swatch swatch-tidemark" aria-hidden="true" />
        tidemark
      </li>
    </ul>
  )
}
