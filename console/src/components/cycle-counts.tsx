import type { CycleDocument } from '../../../src/server/console/documents.ts'
import { formatCompact, countDeleted, countLanded } from '../format.ts'

/** Counts with signs; zeros are omitted. */
export function CycleCounts({ cycle: { counts } }: { cycle: Pick<CycleDocument, 'counts'> }) {
  const told = [
    { sign: '+', value: countLanded(counts), word: 'landed', tone: 'plus' },
    { sign: '−', value: countDeleted(counts), word: 'deleted', tone: 'minus' },
    { sign: '=', value: counts.unchanged, word: 'unchanged', tone: 'same' },
    { sign: '!', value: counts.quarantined, word: 'quarantined', tone: 'bad' },
  ].filter(({ value }) => value > 0)
  if (told.length === 0) return <span className="quiet">nothing new</span>
  return <span className="counts">{told.map(({ sign, value, word, tone }) => <span key={word} className={`count-${tone}`} title={`${value} ${word}`}><span aria-hidden="true">{sign}</span>{formatCompact(value)}<span className="hidden"> {word}</span></span>)}</span>
}
