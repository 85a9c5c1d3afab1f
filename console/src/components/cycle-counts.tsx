import type { CycleDocument } from '../../../src/server/console/documents.ts'
import { formatCompact, countDeleted, countLanded } from '../format.ts'

/** Counts with signs; zeros are omitted. */
export function CycleCounts({ cycle: { counts } }: { cycle: Pick<CycleDocument, 'counts'> }) {
  const shown = [
    { sign: '+', value: countLanded(counts), label: 'written', tone: 'plus' },
    { sign: '−', value: countDeleted(counts), label: 'deleted', tone: 'minus' },
    { sign: '=', value: counts.unchanged, label: 'unchanged', tone: 'same' },
    { sign: '!', value: counts.quarantined, label: 'quarantined', tone: 'bad' },
  ].filter(({ value }) => value > 0)
  if (shown.length === 0) return <span className="quiet">no changes</span>
  return (
    <span className="counts">
      {shown.map(({ sign, value, label, tone }) => (
        <span key={label} className={`count-${tone}`} title={`${value} ${label}`}>
          <span aria-hidden="true">{sign}</span>
          {formatCompact(value)}
          <span className="hidden"> {label}</span>
        </span>
      ))}
    </span>
  )
}
