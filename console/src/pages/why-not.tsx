import { useMutation } from '@tanstack/react-query'
import { Link } from 'wouter'
import type { AbsenceDocument } from '../../../src/server/console/documents.ts'
import { path, post } from '../api.ts'
import { Command } from '../components/command.tsx'
import { ErrorMessage } from '../components/query-states.tsx'
import { TimeAgo } from '../components/time.tsx'

/** Explains a missing key. Runs on request, because it may query the source. */
export function WhyNot({ database, id }: { database: string; id: string }) {
  const asked = useMutation({ mutationFn: () => post<{ data: AbsenceDocument }>(path`/console/api/databases/${database}/rows/${id}/why-not`) })
  if (asked.error !== null) return <ErrorMessage error={asked.error} onRetry={() => asked.mutate()} />
  if (asked.data === undefined) return <button type="button" className="primary" disabled={asked.isPending} onClick={() => asked.mutate()}>{asked.isPending ? 'Asking the source…' : `Why is ${truncateKey(id)} not there?`}</button>
  return <AbsenceDetails absence={asked.data.data} />
}

function AbsenceDetails({ absence: { database, key, verdict, why, advice, source, syncs } }: { absence: AbsenceDocument }) {
  return (
    <section className="why-not" aria-label={`Why ${key} is not in ${database}`}>
      <p role="status"><span className={verdict === 'present' ? 'tag tag-created' : 'tag tag-warn'}>{verdict.replaceAll('_', ' ')}</span> {why}</p>
      <p><b>What to do</b> {advice.split('`').map((part, at) => (at % 2 === 0 ? part : <code key={part}>{part}</code>))}</p>
      <dl className="plan">
        <div><dt>the source</dt><dd>{source.kind === 'unasked' ? `was not asked: ${source.reason}` : source.kind === 'has' ? <>has it now{source.updatedAt !== null && <>, changed <TimeAgo at={source.updatedAt} /></>}</> : 'has nothing under this key'}</dd></div>
        {syncs.map(({ worker, sync, mode, lastComplete }) => (
          <div key={sync}><dt><Link href={path`/syncs/${worker}/${sync}`}>{sync}</Link></dt><dd>{mode}, {lastComplete === null ? 'never complete' : <>complete with cycle {lastComplete.cycle}, begun <TimeAgo at={lastComplete.startedAt} /></>}</dd></div>
        ))}
      </dl>
      <Command label="The same in a terminal" text={`npx tidemark why-not ${database} ${JSON.stringify(key)}`} />
    </section>
  )
}

function truncateKey(id: string): string {
  return `“${id.length > 40 ? `${id.slice(0, 40)}…` : id}”`
}
