import type { HistoryDocument, RecordDocument } from '../../../src/server/console/documents.ts'
import { Timestamp } from '../components/time.tsx'
import { Value } from '../components/value.tsx'

/** The versions in which one field has another value, newest first. */
export function FieldHistory({ record, field }: { record: RecordDocument; field: string }) {
  const entries = record.history.filter((entry, at) => isChange(entry, record.history[at + 1], field))
  if (entries.length === 0) return <p className="quiet">No change of this field is in the history.</p>
  return (
    <ol className="field-history" aria-label={`History of ${field}`}>
      {entries.map((entry) => (
        <li key={entry.sequence}>
          <span className={`tag tag-${entry.action}`}>{entry.action}</span>
          <span className="breakable">
            <Value value={entry.record?.[field]} />
          </span>
          <span className="quiet">
            <Timestamp at={entry.committedAt} /> · {entry.sync}, cycle {entry.cycle}
          </span>
        </li>
      ))}
      {record.isCut && <li className="quiet">and older changes</li>}
    </ol>
  )
}

function isChange(entry: HistoryDocument, before: HistoryDocument | undefined, field: string): boolean {
  if (entry.record === null || before === undefined || before.record === null) return true
  return entry.changed.includes(field)
}
