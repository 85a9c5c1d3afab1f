import { useQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import type { HistoryDocument, RecordDocument } from '../../../src/server/console/documents.ts'
import { ApiError, get, path } from '../api.ts'
import { Command } from '../components/command.tsx'
import { EmptyState, QueryView } from '../components/query-states.tsx'
import { TimeAgo, Timestamp } from '../components/time.tsx'
import { Value } from '../components/value.tsx'
import { ExactNumber } from '../exact-json.ts'
import { formatCount, pluralize, formatKey } from '../format.ts'
import { WhyNot } from './why-not.tsx'

export function RecordPage({ database, id }: { database: string; id: string }) {
  const query = useQuery({
    queryKey: ['record', database, id],
    queryFn: ({ signal }) => get<{ data: RecordDocument }>(path`/console/api/databases/${database}/rows/${id}`, signal),
    refetchInterval: 5_000,
  })
  return (
    <>
      <nav className="crumbs" aria-label="Breadcrumbs">
        <Link href="/databases">Databases</Link> <span aria-hidden="true">/</span>{' '}
        <Link href={path`/databases/${database}`}>{database}</Link>
      </nav>
      <h1 className="clamped" title={id}>
        {formatKey(id)}
      </h1>
      {query.error instanceof ApiError && query.error.status === 404 ? (
        <>
          <EmptyState title="No history for this key">
            The record never existed, or it was deleted before the start of the log.
          </EmptyState>
          <div className="ask">
            <WhyNot database={database} id={id} />
          </div>
        </>
      ) : (
        <QueryView of={query}>{({ data }) => <RecordDetails record={data} />}</QueryView>
      )}
    </>
  )
}

function RecordDetails({ record }: { record: RecordDocument }) {
  const [newest] = record.history
  const fields = record.history.find((entry) => entry.record !== null)?.record ?? null
  if (newest === undefined) return null
  return (
    <>
      <p className="quiet">
        {record.isLive ? (
          <>
            Changed <TimeAgo at={newest.committedAt} />
          </>
        ) : (
          <>
            Deleted <TimeAgo at={newest.committedAt} />; the last version is shown below
          </>
        )}{' '}
        · {pluralize(record.history.length, 'change')}
        {record.isCut && ' and older'}
      </p>
      <div className="two">
        <section aria-labelledby="record-now">
          <h2 id="record-now">{record.isLive ? 'Record' : 'Last version'}</h2>
          {fields !== null && (
            <RecordFields
              record={fields}
              changed={newest.action === 'updated' && record.history.length > 1 ? newest.changed : []}
            />
          )}
        </section>
        <section aria-labelledby="record-why">
          <h2 id="record-why">Change history</h2>
          <ol className="why">
            {record.history.map((entry, at) => (
              <HistoryEntry key={entry.sequence} entry={entry} before={record.history[at + 1]} />
            ))}
          </ol>
          {!record.isCut && record.history.at(-1)?.action !== 'created' && (
            <p className="quiet">Older changes are no longer in the log.</p>
          )}
          {!record.isLive && <WhyNot database={record.database} id={record.key} />}
          <Command
            label="Run in a terminal"
            text={`npx tidemark why ${record.database} ${JSON.stringify(record.key)}`}
          />
        </section>
      </div>
    </>
  )
}

function RecordFields({ record, changed }: { record: Readonly<Record<string, unknown>>; changed: readonly string[] }) {
  return (
    <dl className="members">
      {Object.entries(record).map(([name, value]) => (
        <div key={name} className={changed.includes(name) ? 'is-changed' : ''}>
          <dt className="clamped" title={name}>
            {name}
          </dt>
          <dd>
            {isLong(value) ? (
              <pre tabIndex={0} aria-label={name}>
                <code>{typeof value === 'string' ? value : JSON.stringify(value, null, 2)}</code>
              </pre>
            ) : (
              <Value value={value} />
            )}
          </dd>
        </div>
      ))}
    </dl>
  )
}

const LINE_MAX = 80

/** A value that does not fit one line is shown in a block. */
function isLong(value: unknown): boolean {
  if (value === null || value instanceof ExactNumber) return false
  return typeof value === 'string' ? value.length > LINE_MAX : typeof value === 'object'
}

const SHOWN_MAX = 8

/** One commit: the changed fields, and the sync, cycle and page that committed it. */
function HistoryEntry({ entry, before }: { entry: HistoryDocument; before: HistoryDocument | undefined }) {
  const isUpdate = entry.action === 'updated' && before !== undefined
  return (
    <li className={`why-entry action-${entry.action}`}>
      <p>
        <span className={`tag tag-${entry.action}`}>{entry.action}</span> <Timestamp at={entry.committedAt} />{' '}
        <span className="quiet">sequence {formatCount(entry.sequence)}</span>
      </p>
      <p className="quiet">
        by <Link href={path`/syncs/${entry.worker}/${entry.sync}`}>{entry.sync}</Link>, cycle {entry.cycle}, page{' '}
        {entry.page}
        {entry.upstreamAt !== null && (
          <>
            ; changed in the source <Timestamp at={entry.upstreamAt} />
          </>
        )}
      </p>
      {isUpdate && (
        <dl className="diff">
          {entry.changed.slice(0, SHOWN_MAX).map((name) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>
                <span className="diff-old">
                  <Value value={before.record?.[name]} />
                </span>{' '}
                <span aria-label="changed to">→</span>{' '}
                <span className="diff-new">
                  <Value value={entry.record?.[name]} />
                </span>
              </dd>
            </div>
          ))}
          {entry.changed.length > SHOWN_MAX && (
            <div>
              <dt>and {entry.changed.length - SHOWN_MAX} more</dt>
              <dd />
            </div>
          )}
        </dl>
      )}
    </li>
  )
}
