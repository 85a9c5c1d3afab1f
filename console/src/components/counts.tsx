import type { CycleDocument } from '../../../src/server/console/documents.ts'
import { compact, gone, landed } from '../format.ts'

/** What a cycle came to, in signs: what is zero is left out. */
export function Counts({ cycle: { counts } }: { cycle: Pick<CycleDocument, 'counts'> }) {
  const told = [
    { sign: '+', value: landed(counts), word: 'landed', tone: 'plus' },
    { sign: '−', value: gone(counts), word: 'deleted', tone: 'minus' },
    { sign: '=', value: counts.unchanged, word: 'unchanged', tone: 'same' },
    { sign: '!', value: counts.quarantined, word: 'quarantined', tone: 'bad' },
  ].filter(({ value }) => value > 0)
  if (told.length === 0) return <span className="quiet">nothing new</span>
  return <span className="counts">{told.map(({ sign, value, word, tone }) => <span key={word} className={`count-${tone}`} title={`${value} ${word}`}><span aria-hidden="true">{sign}</span>{compact(value)}<span className="hidden"> {word}</span></span>)}</span>
}
