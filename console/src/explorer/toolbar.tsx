import { useEffect, useRef, useState } from 'react'
import { ApiError, path, sendRequest } from '../api.ts'
import { formatBytes, formatDate, formatTime } from '../format.ts'
import { describeFilter } from './columns.ts'
import { toApiQuery, type View } from './view-state.ts'

const TYPING_PAUSE_MS = 300

/** The search field writes to the URL once the user pauses. */
export function SearchField({ value, onSearch }: { value: string; onSearch: (text: string) => void }) {
  const [text, setText] = useState(value)
  const sent = useRef(value)
  useEffect(() => {
    if (value !== sent.current) setText((sent.current = value))
  }, [value])
  useEffect(() => {
    if (text.trim() === sent.current) return undefined
    const timer = setTimeout(() => onSearch((sent.current = text.trim())), TYPING_PAUSE_MS)
    return () => clearTimeout(timer)
  })
  return (
    <input
      type="search"
      placeholder="Search all columns  /"
      aria-label="Search keys and values"
      maxLength={200}
      value={text}
      onChange={(event) => setText(event.target.value)}
    />
  )
}

/** Shows the rows as of a time; the entered time is local. */
export function AsOfControl({ asOf, onChange }: { asOf: string; onChange: (asOf: string) => void }) {
  const local = asOf === '' ? '' : `${formatDate(asOf)}T${formatTime(asOf)}`
  return (
    <label className={`as-of ${asOf === '' ? '' : 'is-set'}`}>
      As of
      <input
        type="datetime-local"
        step={1}
        value={local}
        onChange={(event) => {
          const at = new Date(event.target.value)
          onChange(Number.isNaN(at.getTime()) ? '' : at.toISOString())
        }}
      />
      {asOf !== '' && (
        <button type="button" className="small" onClick={() => onChange('')}>
          Now
        </button>
      )}
    </label>
  )
}

export function FilterChips({ view, onChange }: { view: View; onChange: (change: Partial<View>) => void }) {
  if (view.filters.length === 0) return null
  return (
    <ul className="filter-chips" aria-label="Filters">
      {view.filters.map((filter) => (
        <li key={JSON.stringify(filter)}>
          <span className="clip" title={describeFilter(filter)}>
            {describeFilter(filter)}
          </span>
          <button
            type="button"
            aria-label={`Remove the filter ${describeFilter(filter)}`}
            onClick={() => onChange({ filters: view.filters.filter((other) => other !== filter) })}
          >
            ×
          </button>
        </li>
      ))}
      {view.filters.length > 1 && (
        <li className="is-plain">
          <button type="button" onClick={() => onChange({ filters: [] })}>
            Remove all
          </button>
        </li>
      )}
    </ul>
  )
}

const FORMATS = [
  ['csv', 'CSV'],
  ['ndjson', 'NDJSON'],
  ['parquet', 'Parquet'],
] as const

/** Downloads every row of the view, in its order. */
export function ExportMenu({ database, view }: { database: string; view: View }) {
  const menu = useRef<HTMLDetailsElement>(null)
  const [progress, setProgress] = useState<string | null>(null)
  const start = async (format: string): Promise<void> => {
    if (menu.current !== null) menu.current.open = false
    setProgress('Exporting…')
    try {
      const query = toApiQuery(view)
      query.set('format', format)
      const response = await sendRequest(`${path`/console/api/databases/${database}/export`}?${query}`)
      const file = await readAll(response, (bytes) => setProgress(`Exporting… ${formatBytes(bytes)}`))
      saveFile(file, `${database}.${format}`)
      setProgress(null)
    } catch (error) {
      setProgress(error instanceof ApiError ? error.message : 'The export failed: the connection was lost.')
    }
  }
  return (
    <div className="export">
      <details className="menu" ref={menu}>
        <summary>Export</summary>
        <div className="menu-items">
          {FORMATS.map(([format, name]) => (
            <button key={format} type="button" onClick={() => void start(format)}>
              {name}
            </button>
          ))}
        </div>
      </details>
      {progress !== null && (
        <span className="quiet" role="status">
          {progress}
        </span>
      )}
    </div>
  )
}

/** The browser keeps a large Blob on disk. */
async function readAll(response: Response, onProgress: (bytes: number) => void): Promise<Blob> {
  const reader = response.body?.getReader()
  if (reader === undefined) return response.blob()
  const parts: Blob[] = []
  let bytes = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return new Blob(parts)
    parts.push(new Blob([value as BlobPart]))
    onProgress((bytes += value.length))
  }
}

function saveFile(file: Blob, name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(file)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}
