import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import type { Action } from '../../../src/contract/index.ts'
import type { DeliveryDocument, WebhookDocument } from '../../../src/server/console/documents.ts'
import { get, path, post } from '../api.ts'
import { Command } from '../components/code.tsx'
import { DataTable } from '../components/data-table.tsx'
import { Dialog } from '../components/dialog.tsx'
import { Empty, Shown } from '../components/states.tsx'
import { Ago, Moment } from '../components/time.tsx'
import { count, plural } from '../format.ts'
import { useDatabases } from './databases.tsx'

const POLL_MS = 3_000

export function WebhooksPage() {
  const [adds, setAdds] = useState(false)
  const asked = useQuery({ queryKey: ['webhooks'], queryFn: ({ signal }) => get<{ data: WebhookDocument[] }>('/api/webhooks', signal), refetchInterval: POLL_MS })
  return (
    <>
      <div className="title-bar">
        <div><h1>Webhooks</h1><p className="quiet">Every change, signed and sent in order; tried again when it fails, kept when it is given up.</p></div>
        <button type="button" className="primary" onClick={() => setAdds(true)}>New webhook…</button>
      </div>
      <Shown of={asked}>
        {({ data }) => data.length === 0 ? <Empty title="There are no webhooks">Changes go to whoever asks for them, and to nobody else.</Empty> : data.map((webhook) => <WebhookCard key={webhook.id} webhook={webhook} />)}
      </Shown>
      {adds && <NewWebhook onClose={() => setAdds(false)} />}
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
  const tested = act.variables === 'test' ? act.data?.data : undefined
  return (
    <section className="card" aria-label={`Webhook ${webhook.url}`}>
      <div className="title-bar">
        <div>
          <h2 className="breakable">{webhook.url} <span className={`tag ${TONES[webhook.state]}`}>{webhook.state}</span></h2>
          <p className="quiet">{webhook.databases?.join(', ') ?? 'every database'} · {webhook.actions?.join(', ') ?? 'every action'} · <code>{webhook.id}</code></p>
        </div>
        <div className="actions">
          <button type="button" disabled={act.isPending} onClick={() => act.mutate('test')}>Send a test</button>
          <button type="button" disabled={act.isPending} onClick={() => act.mutate(webhook.enabled ? 'pause' : 'resume')}>{webhook.enabled ? 'Pause' : 'Resume'}</button>
          <button type="button" disabled={act.isPending || (webhook.waiting === 0 && webhook.dead === 0)} onClick={() => act.mutate('replay')} title="Tries again what waits or was given up.">Replay</button>
        </div>
      </div>
      {webhook.disabled !== null && <p className="field-error">{webhook.disabled}</p>}
      {act.error !== null && <p className="field-error" role="alert">{act.error.message}</p>}
      {tested !== undefined && <p role="status">{tested.delivered === true ? <span className="tag tag-created">test delivered</span> : <span className="tag tag-bad">test not delivered</span>} {tested.status ?? 'no answer'} <span className="quiet">{tested.answer}</span></p>}
      <dl className="facts">
        <div><dt>Behind</dt><dd>{count(webhook.behind)}</dd><dd className="quiet">of the feed's newest</dd></div>
        <div><dt>Waiting</dt><dd>{count(webhook.waiting)}</dd><dd className="quiet">{webhook.retryAt === null ? 'to be tried again' : <>next <Ago at={webhook.retryAt} /></>}</dd></div>
        <div><dt>Given up</dt><dd>{count(webhook.dead)}</dd><dd className="quiet">until they are replayed</dd></div>
        <div><dt>Got through</dt><dd>{webhook.succeededAt === null ? 'never' : <Ago at={webhook.succeededAt} />}</dd><dd className="quiet">{webhook.failedAt === null ? 'never failed' : <>failed <Ago at={webhook.failedAt} /></>}</dd></div>
        <div><dt>Last answer</dt><dd>{webhook.lastStatus ?? '–'}</dd><dd className="quiet clip" title={webhook.lastAnswer ?? ''}>{webhook.lastAnswer || 'without a text'}</dd></div>
      </dl>
      {webhook.waiting + webhook.dead > 0 && <Deliveries webhook={webhook} />}
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
    <Shown of={asked} lines={3}>
      {(deliveries) => (
        <>
          <h3>{plural(webhook.waiting + webhook.dead, 'delivery', 'deliveries')} that failed</h3>
          <DataTable
            label={`Deliveries of ${webhook.url}`} rows={deliveries} keyOf={({ messageId }) => messageId}
            columns={[
              { title: 'Record', isWide: true, cell: ({ database, key: id }) => <><Link href={path`/databases/${database}/${id}`}>{id}</Link> <span className="quiet">{database}</span></> },
              { title: 'Tries', isNumber: true, cell: ({ attempts }) => attempts },
              { title: 'First', cell: ({ firstAt }) => (firstAt === null ? '–' : <Moment at={firstAt} />) },
              { title: 'Next', cell: ({ dead, nextAt }) => (dead ? <span className="tag tag-bad">given up</span> : nextAt === null ? 'after the one before' : <Ago at={nextAt} />) },
              { title: 'Answer', cell: ({ lastStatus, lastAnswer }) => <>{lastStatus ?? 'none'} <span className="quiet">{lastAnswer?.slice(0, 80)}</span></> },
            ]}
          />
        </>
      )}
    </Shown>
  )
}

const ACTIONS: readonly Action[] = ['created', 'updated', 'deleted']

/** Any number of them; none stands for all. */
function Choices<Option extends string>({ title, none, options, chosen, onChange }: { title: string; none: string; options: readonly Option[]; chosen: readonly Option[]; onChange: (chosen: readonly Option[]) => void }) {
  return (
    <fieldset className="choices">
      <legend>{title} <span className="quiet">{chosen.length === 0 ? none : `only ${chosen.join(', ')}`}</span></legend>
      {options.map((option) => (
        <label key={option} className="choice"><input type="checkbox" checked={chosen.includes(option)} onChange={(event) => onChange(options.filter((other) => (other === option ? event.target.checked : chosen.includes(other))))} /> {option}</label>
      ))}
    </fieldset>
  )
}

function NewWebhook({ onClose }: { onClose: () => void }) {
  const client = useQueryClient()
  const [url, setUrl] = useState('')
  const [databases, setDatabases] = useState<readonly string[]>([])
  const [actions, setActions] = useState<readonly Action[]>([])
  const [all, setAll] = useState(false)
  const known = useDatabases()
  const add = useMutation({
    mutationFn: () => post<{ data: WebhookDocument & { secret: string } }>('/api/webhooks', { url, all, ...(databases.length > 0 && { databases }), ...(actions.length > 0 && { actions }) }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['webhooks'] }),
  })
  if (add.data !== undefined) return <Dialog title="The webhook is there" onClose={onClose}><p>With this secret its messages are verified. It is shown this once.</p><Command label="The secret" text={add.data.data.secret} /></Dialog>
  return (
    <Dialog title="New webhook" onClose={onClose} actions={<button type="submit" form="new-webhook" className="primary" disabled={url.trim() === '' || add.isPending}>Add it</button>}>
      <form id="new-webhook" onSubmit={(event) => { event.preventDefault(); add.mutate() }}>
        <label htmlFor="webhook-url">URL</label>
        <input id="webhook-url" type="url" required placeholder="https://…" value={url} onChange={(event) => setUrl(event.target.value)} aria-describedby="webhook-help" />
        <p id="webhook-help" className="quiet">A public address. <code>tidemark webhooks add --allow</code> also takes those inside your network.</p>
        <Choices title="Databases" none="every database, also those that come later" options={known.data?.data.map(({ name }) => name) ?? []} chosen={databases} onChange={setDatabases} />
        <Choices title="Actions" none="every action" options={ACTIONS} chosen={actions} onChange={setActions} />
        <label className="choice"><input type="checkbox" checked={all} onChange={(event) => setAll(event.target.checked)} /> Begin with everything the log holds, not with what comes from now on</label>
        {add.error !== null && <p className="field-error" role="alert">{add.error.message}</p>}
      </form>
    </Dialog>
  )
}
