import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import type { DeliveryDocument, WebhookDocument } from '../../../src/server/console/documents.ts'
import { get, path, post } from '../api.ts'
import { DataTable } from '../components/data-table.tsx'
import { EmptyState, QueryView } from '../components/query-states.tsx'
import { TimeAgo, Timestamp } from '../components/time.tsx'
import { formatCount, formatKey, summarizeNames } from '../format.ts'
import { useSession } from '../session.tsx'
import { EditWebhookDialog, NewWebhookDialog } from './webhook-forms.tsx'

const POLL_MS = 3_000

export function WebhooksPage() {
  const { hasScope: may } = useSession()
  const [adds, setAdds] = useState(false)
  const asked = useQuery({ queryKey: ['webhooks'], queryFn: ({ signal }) => get<{ data: WebhookDocument[] }>('/api/webhooks', signal), refetchInterval: POLL_MS })
  return (
    <>
      <div className="title-bar">
        <div><h1>Webhooks</h1><p className="quiet">Every change, signed and sent in order; tried again when it fails, kept when it is given up.</p></div>
        {may('admin') && <button type="button" className="primary" onClick={() => setAdds(true)}>New webhook…</button>}
      </div>
      <QueryView of={asked}>
        {({ data }) => data.length === 0 ? <EmptyState title="There are no webhooks">Changes go to whoever asks for them, and to nobody else.</EmptyState> : data.map((webhook) => <WebhookCard key={webhook.id} webhook={webhook} />)}
      </QueryView>
      {adds && <NewWebhookDialog onClose={() => setAdds(false)} />}
    </>
  )
}

function WebhookCard({ webhook }: { webhook: WebhookDocument }) {
  const client = useQueryClient()
  const address = path`/api/webhooks/${webhook.id}`
  const act = useMutation({
    mutationFn: (verb: 'pause' | 'resume' | 'replay' | 'test') => post<{ data: { delivered?: boolean; status?: number | null; answer?: string | null } }>(`${address}/${verb}`),
    onSuccess: () => client.invalidateQueries({ queryKey: ['webhooks'] }),
  })
  const [edits, setEdits] = useState(false)
  const tested = act.variables === 'test' ? act.data?.data : undefined
  return (
    <section className="card" aria-label={`Webhook ${webhook.url}`}>
      <div className="title-bar">
        <div>
          <h2 className="named"><span className="clamped" title={webhook.url}>{webhook.url}</span> <span className={`tag ${TONES[webhook.state]}`}>{webhook.state}</span></h2>
          <p className="quiet"><span title={webhook.databases?.join(', ')}>{webhook.databases === null ? 'every database' : summarizeNames(webhook.databases, 'database')}</span> · {webhook.actions?.join(', ') ?? 'every action'} · <code>{webhook.id}</code></p>
        </div>
        <div className="actions">
          <button type="button" disabled={act.isPending} onClick={() => act.mutate('test')}>Send a test</button>
          <button type="button" disabled={act.isPending} onClick={() => act.mutate(webhook.enabled ? 'pause' : 'resume')}>{webhook.enabled ? 'Pause' : 'Resume'}</button>
          <button type="button" onClick={() => setEdits(true)}>Edit…</button>
          <button type="button" disabled={act.isPending || (webhook.waiting === 0 && webhook.dead === 0)} onClick={() => act.mutate('replay')} title="Tries again what waits or was given up.">Replay</button>
        </div>
      </div>
      {webhook.disabled !== null && <p className="field-error">{webhook.disabled}</p>}
      {act.error !== null && <p className="field-error" role="alert">{act.error.message}</p>}
      {tested !== undefined && <p role="status">{tested.delivered === true ? <span className="tag tag-created">test delivered</span> : <span className="tag tag-bad">test not delivered</span>} {tested.status ?? 'no answer'} <span className="quiet">{tested.answer}</span></p>}
      <dl className="facts">
        <div><dt>Behind</dt><dd>{formatCount(webhook.behind)}</dd><dd className="quiet">changes it has still before it</dd></div>
        <div><dt>Waiting</dt><dd>{formatCount(webhook.waiting)}</dd><dd className="quiet">{webhook.retryAt === null ? 'to be tried again' : <>next <TimeAgo at={webhook.retryAt} /></>}</dd></div>
        <div><dt>Given up</dt><dd>{formatCount(webhook.dead)}</dd><dd className="quiet">until they are replayed</dd></div>
        <div><dt>Got through</dt><dd>{webhook.succeededAt === null ? 'never' : <TimeAgo at={webhook.succeededAt} />}</dd><dd className="quiet">{webhook.failedAt === null ? 'never failed' : <>failed <TimeAgo at={webhook.failedAt} /></>}</dd></div>
        <div><dt>Last answer</dt><dd>{webhook.lastStatus ?? '–'}</dd><dd className="quiet clip" title={webhook.lastAnswer ?? ''}>{webhook.lastAnswer || 'without a text'}</dd></div>
      </dl>
      <Deliveries webhook={webhook} />
      {edits && <EditWebhookDialog webhook={webhook} onClose={() => setEdits(false)} />}
    </section>
  )
}

const TONES: Record<WebhookDocument['state'], string> = { enabled: 'tag-created', failing: 'tag-warn', disabled: 'tag-bad' }

function Deliveries({ webhook }: { webhook: WebhookDocument }) {
  const asked = useQuery({
    queryKey: ['deliveries', webhook.id, webhook.waiting, webhook.dead],
    queryFn: async ({ signal }): Promise<DeliveryDocument[]> => {
      const [waiting, dead] = await Promise.all(['deliveries', 'dead'].map((kind) => get<{ data: DeliveryDocument[] }>(`${path`/api/webhooks/${webhook.id}`}/${kind}?limit=20`, signal)))
      return [...dead!.data, ...waiting!.data]
    },
    placeholderData: (before) => before,
  })
  return (
    <QueryView of={asked} lines={3}>
      {(deliveries) => (
        <>
          <h3>Deliveries that failed</h3>
          {/* As tall as one that failed: most are through a moment later, and nothing below should jump for it. */}
          {deliveries.length === 0 ? <p className="nothing">None: everything it was sent has got through.</p> : <DataTable
            label={`Deliveries of ${webhook.url}`} rows={deliveries} keyOf={({ messageId }) => messageId}
            columns={[
              { title: 'Record', isWide: true, cell: ({ database, key: id }) => <><Link className="clamped" title={id} href={path`/databases/${database}/${id}`}>{formatKey(id)}</Link> <span className="quiet">{database}</span></> },
              { title: 'Tries', isNumber: true, cell: ({ attempts }) => attempts },
              { title: 'First', cell: ({ firstAt }) => (firstAt === null ? '–' : <Timestamp at={firstAt} />) },
              { title: 'Next', cell: ({ dead, nextAt }) => (dead ? <span className="tag tag-bad">given up</span> : nextAt === null ? 'after the one before' : <TimeAgo at={nextAt} />) },
              { title: 'Answer', cell: ({ lastStatus, lastAnswer }) => <>{lastStatus ?? 'none'} <span className="quiet">{lastAnswer?.slice(0, 80)}</span></> },
            ]}
          />}
          {webhook.waiting + webhook.dead > deliveries.length && deliveries.length > 0 && <p className="quiet">The first {formatCount(deliveries.length)} of {formatCount(webhook.waiting + webhook.dead)}.</p>}
        </>
      )}
    </QueryView>
  )
}
