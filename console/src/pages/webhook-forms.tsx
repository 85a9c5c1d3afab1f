import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import type { WebhookAction } from '../../../src/contract/index.ts'
import type { EditPlanDocument, WebhookDocument } from '../../../src/server/console/documents.ts'
import { patch, path, post } from '../api.ts'
import { Command } from '../components/command.tsx'
import { Dialog } from '../components/dialog.tsx'
import { MessageText } from '../components/query-states.tsx'
import { formatCount } from '../format.ts'
import { useDatabases } from './databases.tsx'

const ACTIONS: readonly WebhookAction[] = [
  'created',
  'updated',
  'deleted',
  'destination.failing',
  'destination.recovered',
  'destination.loading',
]

/** No selection means all. */
function CheckboxGroup<Option extends string>({
  title,
  none,
  options,
  chosen,
  onChange,
}: {
  title: string
  none: string
  options: readonly Option[]
  chosen: readonly Option[]
  onChange: (chosen: readonly Option[]) => void
}) {
  return (
    <fieldset className="choices">
      <legend>
        {title}{' '}
        <span className="quiet">
          {chosen.length === 0 ? none : `only ${chosen.length > 5 ? `these ${chosen.length}` : chosen.join(', ')}`}
        </span>
      </legend>
      <div className="choice-list">
        {options.map((option) => (
          <label key={option} className="choice">
            <input
              type="checkbox"
              checked={chosen.includes(option)}
              onChange={(event) =>
                onChange(options.filter((other) => (other === option ? event.target.checked : chosen.includes(other))))
              }
            />{' '}
            {option}
          </label>
        ))}
      </div>
    </fieldset>
  )
}

export function NewWebhookDialog({ onClose }: { onClose: () => void }) {
  const client = useQueryClient()
  const [url, setUrl] = useState('')
  const [databases, setDatabases] = useState<readonly string[]>([])
  const [actions, setActions] = useState<readonly WebhookAction[]>([])
  const [all, setAll] = useState(false)
  const known = useDatabases()
  const add = useMutation({
    mutationFn: () =>
      post<{ data: WebhookDocument & { secret: string } }>('/api/webhooks', {
        url,
        all,
        ...(databases.length > 0 && { databases }),
        ...(actions.length > 0 && { actions }),
      }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['webhooks'] }),
  })
  if (add.data !== undefined)
    return (
      <Dialog title="Webhook created" onClose={onClose}>
        <p>Use this secret to verify its messages. It is shown only once.</p>
        <Command label="Secret" text={add.data.data.secret} />
      </Dialog>
    )
  return (
    <Dialog
      title="New webhook"
      onClose={onClose}
      actions={
        <button type="submit" form="new-webhook" className="primary" disabled={url.trim() === '' || add.isPending}>
          Create webhook
        </button>
      }
    >
      <form
        id="new-webhook"
        onSubmit={(event) => {
          event.preventDefault()
          add.mutate()
        }}
      >
        <label htmlFor="webhook-url">URL</label>
        <input
          id="webhook-url"
          type="url"
          required
          placeholder="https://…"
          value={url}
          onChange={(event) => setUrl(event.target.value)}
          aria-describedby="webhook-help"
        />
        <p id="webhook-help" className="quiet">
          Must be a public address. <code>tidemark webhooks add --allow</code> also accepts addresses in your network.
        </p>
        <CheckboxGroup
          title="Databases"
          none="all databases, including future ones"
          options={known.data?.data.map(({ name }) => name) ?? []}
          chosen={databases}
          onChange={setDatabases}
        />
        <CheckboxGroup title="Actions" none="all changes" options={ACTIONS} chosen={actions} onChange={setActions} />
        <label className="choice">
          <input type="checkbox" checked={all} onChange={(event) => setAll(event.target.checked)} /> Start with the
          whole log instead of new changes
        </label>
        {add.error !== null && (
          <p className="field-error" role="alert">
            {add.error.message}
          </p>
        )}
      </form>
    </Dialog>
  )
}

/** Shows the server's plan for the edit while it is being chosen. */
export function EditWebhookDialog({ webhook, onClose }: { webhook: WebhookDocument; onClose: () => void }) {
  const client = useQueryClient()
  const [typed, setTyped] = useState('')
  const url = useDebounced(typed.trim())
  const [databases, setDatabases] = useState<readonly string[]>(webhook.databases ?? [])
  const [actions, setActions] = useState<readonly WebhookAction[]>(webhook.actions ?? [])
  const known = useDatabases()
  const options = [
    ...new Set([...(known.data?.data.map(({ name }) => name) ?? []), ...(webhook.databases ?? [])]),
  ].toSorted()
  const edit = {
    ...(url !== '' && { url }),
    databases: databases.length === 0 ? null : databases,
    actions: actions.length === 0 ? null : actions,
  }
  const address = path`/api/webhooks/${webhook.id}`
  const planned = useQuery({
    queryKey: ['webhook-plan', webhook.id, edit],
    queryFn: () => patch<{ data: { plan: EditPlanDocument } }>(address, { ...edit, dryRun: true }),
    placeholderData: (before) => before,
    retry: false,
  })
  const save = useMutation({
    mutationFn: () => patch(address, edit),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ['webhooks'] })
      onClose()
    },
  })
  const plan = planned.error === null ? planned.data?.data.plan : undefined
  const error = save.error ?? planned.error
  const isReady =
    plan !== undefined &&
    plan.changes.length > 0 &&
    !planned.isPlaceholderData &&
    url === typed.trim() &&
    !save.isPending
  return (
    <Dialog
      title="Edit webhook"
      onClose={onClose}
      actions={
        <button type="submit" form="edit-webhook" className="primary" disabled={!isReady}>
          Save
        </button>
      }
    >
      <form
        id="edit-webhook"
        onSubmit={(event) => {
          event.preventDefault()
          save.mutate()
        }}
      >
        <CheckboxGroup
          title="Databases"
          none="all databases, including future ones"
          options={options}
          chosen={databases}
          onChange={setDatabases}
        />
        <CheckboxGroup title="Actions" none="all changes" options={ACTIONS} chosen={actions} onChange={setActions} />
        <label htmlFor="edit-url">New URL</label>
        <input
          id="edit-url"
          type="url"
          placeholder={webhook.url}
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
          aria-describedby="edit-url-help"
        />
        <p id="edit-url-help" className="quiet">
          Leave empty to keep the URL. Must be a public address; <code>tidemark webhooks edit --allow</code> also
          accepts addresses in your network.
        </p>
        {plan !== undefined && <EditPlanView plan={plan} />}
        {error !== null && (
          <p className="field-error" role="alert">
            {error.message}
          </p>
        )}
      </form>
    </Dialog>
  )
}

const DEBOUNCE_MS = 400

/** Waits until typing pauses: an incomplete URL is not an error yet. */
function useDebounced(text: string): string {
  const [settled, setSettled] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), DEBOUNCE_MS)
    return () => clearTimeout(timer)
  }, [text])
  return settled
}

function EditPlanView({ plan: { changes, from, notes } }: { plan: EditPlanDocument }) {
  if (changes.length === 0)
    return (
      <p className="quiet" role="status">
        No changes yet. New settings apply from sequence {formatCount(from)}.
      </p>
    )
  return (
    <div role="status">
      <dl className="plan">
        {changes.map(({ what, from: was, to }) => (
          <div key={what}>
            <dt>{what}</dt>
            <dd className="breakable">
              {was || 'none'} → <b>{to || 'none'}</b>
            </dd>
          </div>
        ))}
      </dl>
      <ul className="notes">
        {notes.map((note) => (
          <li key={note}>
            <MessageText text={note} />
          </li>
        ))}
      </ul>
    </div>
  )
}
