import { ExactNumber } from '../exact-json.ts'

const LENGTH_MAX = 80

/** A value of a record, formatted by its type in one line. */
export function Value({ value }: { value: unknown }) {
  if (value === undefined) return <span className="quiet">–</span>
  if (value === null) return <span className="value-null">null</span>
  if (typeof value === 'number' || value instanceof ExactNumber)
    return <span className="value-number">{String(value)}</span>
  if (typeof value === 'boolean') return <span className="value-flag">{String(value)}</span>
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return (
    <span className={typeof value === 'string' ? '' : 'value-json'} title={text.length > LENGTH_MAX ? text : undefined}>
      {text.length > LENGTH_MAX ? `${text.slice(0, LENGTH_MAX)}…` : text}
    </span>
  )
}
