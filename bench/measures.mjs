/**
 * One line of the printed table: `figure` is a ratio to the raw limit of the same run (1 = as fast as the limit), or an
 * amount with a unit. `bar` is the lowest ratio, or the highest amount, that is good enough; null where none is set.
 * `cpu` is the same ratio by processor time, where that was measured.
 */
export function ratio(work, limit, { ratio: figure, ours, raw, cpuRatio: cpu = null }, unit, bar = null) {
  return { work, limit, figure, unit: '×', ours, raw, of: unit, cpu, bar, met: bar === null ? null : figure >= bar }
}

export function amount(work, limit, { figure, raw = null }, unit, bar = null) {
  const met = bar === null ? null : figure <= bar
  return { work, limit, figure, unit, ours: figure, raw, of: unit, cpu: null, bar, met }
}

export function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]
}

export function percentile(values, share) {
  return values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))]
}

/** The median of the ratios between neighbours of two lists of rates, with the medians of both. */
export function compared(ours, raw) {
  return { ratio: median(ours.map((rate, turn) => rate / raw[turn])), ours: median(ours), raw: median(raw) }
}

export function renderTable(measures) {
  const head = ['work', 'raw limit in the same run', 'raw', 'Tidemark', 'figure', 'by CPU', 'bar', '']
  const lines = measures.map(({ work, limit, raw, ours, of, figure, unit, cpu, bar, met }) => [
    work,
    limit,
    raw === null ? '–' : `${short(raw)} ${of}`,
    `${short(ours)} ${of}`,
    unit === '×' ? `${figure.toFixed(2)} ×` : `${short(figure)} ${unit}`,
    cpu === null ? '' : `${cpu.toFixed(2)} ×`,
    bar === null ? '–' : unit === '×' ? `≥ ${bar}` : `≤ ${bar} ${unit}`,
    met === null ? '' : met ? 'met' : 'MISSED',
  ])
  const widths = head.map((title, at) => Math.max(title.length, ...lines.map((line) => line[at].length)))
  const row = (cells) => `| ${cells.map((cell, at) => cell.padEnd(widths[at])).join(' | ')} |`
  return [row(head), `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...lines.map(row)].join('\n')
}

function short(value) {
  if (value >= 10_000) return `${(value / 1_000).toFixed(0)} k`
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)
}
