import { useMutation } from '@tanstack/react-query'
import { Link } from 'wouter'
import type { AbsenceDocument } from '../../../src/server/console/documents.ts'
import { path, post } from '../api.ts'
import { Command } from '../components/command.tsx'
import { ErrorMessage } from '../components/query-states.tsx'
import { TimeAgo } from '../components/time.tsx'

/** Explains a missing key. Runs on request, because it may query the source. */
export function WhyNot({ database, id }: { database: string; id: string }) {
  const absence = useMutation({
    mutationFn: () => post<{ data: AbsenceDocument }>(path`/console/api/databases/${database}/rows/${id}/why-not`),
  })
  if (absence.error !== null) return <ErrorMessage error={absence.error} onRetry={() => absence.mutate()} />
  if (absence.data === undefined)
    return (
      <button type="button" className="primary" disabled={absence.isPending} onClick={() => absence.mutate()}>
        {absence.isPending ? 'Querying the source…' : `Why is ${truncateKey(id)} missing?`}
      </button>
    )
  return <AbsenceDetails absence={absence.data.data} />
}

function AbsenceDetails({
  absence: { database, key, verdict, why, advice, source, syncs },
}: {
  absence: AbsenceDocument
}) {
  return (
    <section className="why-not" aria-label={`Why ${key} is missing from ${database}`}>
      <p role="status">
        <span className={verdict === 'present' ? 'tag tag-created' : 'tag tag-warn'}>
          {verdict.replaceAll('_', ' ')}
        </span>{' '}
        {why}
      </p>
      <p>
        <b>Next step</b>{' '}
        {advice.split('`').map((part, index) => (index % 2 === 0 ? part : <code key={part}>{part}</code>))}
      </p>
      <dl className="plan">
        <div>
          <dt>source</dt>
          <dd>
            {source.kind === 'unasked' ? (
              `not queried: ${source.reason}`
            ) : source.kind === 'has' ? (
              <>
                has the record now
                {source.updatedAt !== null && (
                  <>
                    , changed <TimeAgo at={source.updatedAt} />
                  </>
                )}
              </>
            ) : (
              'has no record with this key'
            )}
          </dd>
        </div>
        {syncs.map(({ worker, sync, mode, lastComplete }) => (
          <div key={sync}>
            <dt>
              <Link href={path`/syncs/${worker}/${sync}`}>{sync}</Link>
            </dt>
            <dd>
              {mode},{' '}
              {lastComplete === null ? (
                'no complete cycle'
              ) : (
                <>
                  last complete cycle {lastComplete.cycle}, started <TimeAgo at={lastComplete.startedAt} />
                </>
              )}
            </dd>
          </div>
        ))}
      </dl>
      <Command label="Run in a terminal" text={`npx tidemark why-not ${database} ${JSON.stringify(key)}`} />
    </section>
  )
}

function truncateKey(id: string): string {
  return `“${id.length > 40 ? `${id.slice(0, 40)}…` : id}”`
}
