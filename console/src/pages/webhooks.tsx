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
  const { hasScope } = useSession()
  const [isAdding, setIsAdding] = useState(false)
  const webhooks = useQuery({
    queryKey: ['webhooks'],
    queryFn: ({ signal }) => get<{ data: WebhookDocument[] }>('/api/webhooks', signal),
    refetchInterval: POLL_MS,
  })
  return (
    <>
      <div className="title-bar">
        <div>
          <h1>Webhooks</h1>
          <p className="quiet">
            Sends every change, signed and in order. Failed deliveries are retried, and kept when retries are exhausted.
          </p>
        </div>
        {hasScope('admin') && (
          <button type="button" className="primary" onClick={() => setIsAdding(true)}>
            New webhook…
          </button>
        )}
      </div>
      <QueryView of={webhooks}>
        {({ data }) =>
          data.length === 0 ? (
            <EmptyState title="No webhooks">Changes are available through the feed only.</EmptyState>
          ) : (
            data.map((webhook) => <WebhookCard key={webhook.id} webhook={webhook} />)
          )
        }
      </QueryView>
      {isAdding && <NewWebhookDialog onClose={() => setIsAdding(false)} />}
    </>
  )
}

function WebhookCard({ webhook }: { webhook: WebhookDocument }) {
  const client = useQueryClient()
  const address = path`/api/webhooks/${webhook.id}`
  const act = useMutation({
    mutationFn: (verb: 'pause' | 'resume' | 'replay' | 'test') =>
      post<{ data: { delivered?: boolean; status?: number | null; answer?: string | null } }>(`${address}/${verb}`),
    onSuccess: () => client.invalidateQueries({ queryKey: ['webhooks'] }),
  })
  const [isEditing, setIsEditing] = useState(false)
  const tested = act.variables === 'test' ? act.data?.data : undefined
  return (
    <section className="card" aria-label={`Webhook ${webhook.url}`}>
      <div className="title-bar">
        <div>
          <h2 className="named">
            <span className="clamped" title={webhook.url}>
              {webhook.url}
            </span>{' '}
            <span className={`tag ${TONES[webhook.state]}`}>{webhook.state}</span>
          </h2>
          <p className="quiet">
            <span title={webhook.databases?.join(', ')}>
              {webhook.databases === null ? 'all databases' : summarizeNames(webhook.databases, 'database')}
            </span>{' '}
            · {webhook.actions?.join(', ') ?? 'all changes'} · <code>{webhook.id}</code>
          </p>
        </div>
        <div className="actions">
          <button type="button" disabled={act.isPending} onClick={() => act.mutate('test')}>
            Send test
          </button>
          <button
            type="button"
            disabled={act.isPending}
            onClick={() => act.mutate(webhook.enabled ? 'pause' : 'resume')}
          >
            {webhook.enabled ? 'Pause' : 'Resume'}
          </button>
          <button type="button" onClick={() => setIsEditing(true)}>
            Edit…
          </button>
          <button
            type="button"
            disabled={act.isPending || (webhook.waiting === 0 && webhook.failed === 0)}
            onClick={() => act.mutate('replay')}
            title="Retries waiting and failed deliveries."
          >
            Replay
          </button>
        </div>
      </div>
      {webhook.disabled !== null && <p className="field-error">{webhook.disabled}</p>}
      {act.error !== null && (
        <p className="field-error" role="alert">
          {act.error.message}
        </p>
      )}
      {tested !== undefined && (
        <p role="status">
          {tested.delivered === true ? (
            <span className="tag tag-created">test delivered</span>
          ) : (
            <span className="tag tag-bad">test not delivered</span>
          )}{' '}
          {tested.status ?? 'no response'} <span className="quiet">{tested.answer}</span>
        </p>
      )}
      <dl className="facts">
        <div>
          <dt>Behind</dt>
          <dd>{formatCount(webhook.behind)}</dd>
          <dd className="quiet">pending changes</dd>
        </div>
        <div>
          <dt>Waiting</dt>
          <dd>{formatCount(webhook.waiting)}</dd>
          <dd className="quiet">
            {webhook.retryAt === null ? (
              'to be retried'
            ) : (
              <>
                next attempt <TimeAgo at={webhook.retryAt} />
              </>
            )}
          </dd>
        </div>
        <div>
          <dt>Failed</dt>
          <dd>{formatCount(webhook.failed)}</dd>
          <dd className="quiet">retries exhausted</dd>
        </div>
        <div>
          <dt>Last success</dt>
          <dd>{webhook.succeededAt === null ? 'never' : <TimeAgo at={webhook.succeededAt} />}</dd>
          <dd className="quiet">
            {webhook.failedAt === null ? (
              'never failed'
            ) : (
              <>
                last failure <TimeAgo at={webhook.failedAt} />
              </>
            )}
          </dd>
        </div>
        <div>
          <dt>Last response</dt>
          <dd>{webhook.lastStatus ?? '–'}</dd>
          <dd className="quiet clip" title={webhook.lastResponse ?? ''}>
            {webhook.lastResponse || 'empty body'}
          </dd>
        </div>
      </dl>
      <Deliveries webhook={webhook} />
      {isEditing && <EditWebhookDialog webhook={webhook} onClose={() => setIsEditing(false)} />}
    </section>
  )
}

const TONES: Record<WebhookDocument['state'], string> = {
  enabled: 'tag-created',
  failing: 'tag-warn',
  disabled: 'tag-bad',
}

function Deliveries({ webhook }: { webhook: WebhookDocument }) {
  const deliveriesQuery = useQuery({
    queryKey: ['deliveries', webhook.id, webhook.waiting, webhook.failed],
    queryFn: async ({ signal }): Promise<DeliveryDocument[]> => {
      const lists = await Promise.all(
        ['failed', 'deliveries'].map((kind) =>
          get<{ data: DeliveryDocument[] }>(`${path`/api/webhooks/${webhook.id}`}/${kind}?limit=20`, signal),
        ),
      )
      return lists.flatMap(({ data }) => data)
    },
    placeholderData: (before) => before,
  })
  return (
    <QueryView of={deliveriesQuery} lines={3}>
      {(deliveries) => (
        <>
          <h3>Failed deliveries</h3>
          {/* As tall as one row, to avoid a layout shift: most deliveries succeed shortly after. */}
          {deliveries.length === 0 ? (
            <p className="nothing">None: all messages were delivered.</p>
          ) : (
            <DataTable
              label={`Deliveries of ${webhook.url}`}
              rows={deliveries}
              keyOf={({ messageId }) => messageId}
              columns={[
                {
                  title: 'Record',
                  isWide: true,
                  cell: ({ database, key: id }) => (
                    <>
                      <Link className="clamped" title={id} href={path`/databases/${database}/${id}`}>
                        {formatKey(id)}
                      </Link>{' '}
                      <span className="quiet">{database}</span>
                    </>
                  ),
                },
                { title: 'Attempts', isNumber: true, cell: ({ attempts }) => attempts },
                {
                  title: 'First attempt',
                  cell: ({ firstAt }) => (firstAt === null ? '–' : <Timestamp at={firstAt} />),
                },
                {
                  title: 'Next attempt',
                  cell: ({ failed, nextAt }) =>
                    failed ? (
                      <span className="tag tag-bad">failed</span>
                    ) : nextAt === null ? (
                      'after its predecessor'
                    ) : (
                      <TimeAgo at={nextAt} />
                    ),
                },
                {
                  title: 'Response',
                  cell: ({ lastStatus, lastResponse }) => (
                    <>
                      {lastStatus ?? 'none'} <span className="quiet">{lastResponse?.slice(0, 80)}</span>
                    </>
                  ),
                },
              ]}
            />
          )}
          {webhook.waiting + webhook.failed > deliveries.length && deliveries.length > 0 && (
            <p className="quiet">
              The first {formatCount(deliveries.length)} of {formatCount(webhook.waiting + webhook.failed)}.
            </p>
          )}
        </>
      )}
    </QueryView>
  )
}
