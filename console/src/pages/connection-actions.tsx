import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { ConnectionDocument, ProviderDocument } from '../../../src/server/console/documents.ts'
import { path, post, remove } from '../api.ts'
import { Dialog } from '../components/dialog.tsx'
import { MessageText } from '../components/query-states.tsx'
import { useSession } from '../session.tsx'
import { ConnectionFormDialog } from './connection-form.tsx'

type TestResult =
  | { readonly ok: true; readonly account: ConnectionDocument['account'] }
  | { readonly ok: false; readonly message: string }

export function ConnectionActions({
  connection,
  provider,
}: {
  connection: ConnectionDocument
  provider: ProviderDocument | undefined
}) {
  const { hasScope } = useSession()
  const client = useQueryClient()
  const [asked, setAsked] = useState<Ending | 'form' | null>(null)
  const { name, status } = connection
  const base = path`/api/connections/${name}`
  const refresh = () => client.invalidateQueries()
  const test = useMutation({
    mutationFn: async () => (await post<{ data: TestResult }>(`${base}/test`)).data,
    onSuccess: refresh,
  })
  const enable = useMutation({
    mutationFn: (act: 'enable' | 'disable') => post(`${base}/${act}`, {}),
    onSuccess: refresh,
  })
  const authorize = useMutation({
    mutationFn: async () =>
      (
        await post<{ data: { url: string | null; why: string | null } }>(
          path`/console/api/connections/${name}/authorize`,
        )
      ).data,
    onSuccess: ({ url }) => url !== null && location.assign(url),
  })
  const isDisabled = !hasScope('connections:write') || enable.isPending
  const why = hasScope('connections:write') ? undefined : 'Requires the scope connections:write.'
  const needsPerson = status === 'needs_reauthorization' || status === 'revoked'
  const shared = { type: 'button', disabled: isDisabled, title: why } as const
  const error = test.error ?? enable.error ?? authorize.error
  return (
    <div className="actions">
      {provider?.canAuthorize === true && (
        <button
          {...shared}
          className={needsPerson ? 'primary' : ''}
          disabled={isDisabled || authorize.isPending}
          onClick={() => authorize.mutate()}
        >
          Authorize again
        </button>
      )}
      {provider?.form != null && (
        <button
          {...shared}
          className={needsPerson && !provider.canAuthorize ? 'primary' : ''}
          onClick={() => setAsked('form')}
        >
          Replace credentials…
        </button>
      )}
      {status !== 'revoked' && (
        <button {...shared} disabled={isDisabled || test.isPending} onClick={() => test.mutate()}>
          {test.isPending ? 'Testing' : 'Test'}
        </button>
      )}
      {(status === 'active' || status === 'disabled') && (
        <button {...shared} onClick={() => enable.mutate(status === 'active' ? 'disable' : 'enable')}>
          {status === 'active' ? 'Disable' : 'Enable'}
        </button>
      )}
      {status !== 'revoked' && (
        <button {...shared} className="danger" onClick={() => setAsked('revoke')}>
          Revoke…
        </button>
      )}
      <button {...shared} className="danger" onClick={() => setAsked('remove')}>
        Remove…
      </button>
      <div className="action-result" role="status">
        {authorize.data?.why != null && <span className="field-error">{authorize.data.why}</span>}
        {test.data?.ok === true &&
          (test.data.account === null ? (
            <span className="tag">The vendor was not asked.</span>
          ) : (
            <span className="tag tag-created">The vendor accepts it: {test.data.account.label}</span>
          ))}
        {test.data?.ok === false && (
          <span className="field-error">
            <MessageText text={test.data.message} />
          </span>
        )}
      </div>
      {error !== null && (
        <p className="field-error" role="alert">
          {error.message}
        </p>
      )}
      {asked === 'form' && provider !== undefined && (
        <ConnectionFormDialog providers={[provider]} replaces={connection} onClose={() => setAsked(null)} />
      )}
      {(asked === 'revoke' || asked === 'remove') && (
        <EndDialog connection={connection} ending={asked} onClose={() => setAsked(null)} />
      )}
    </div>
  )
}

type Ending = 'revoke' | 'remove'

const ENDINGS: Record<Ending, { readonly title: string; readonly effect: string; readonly button: string }> = {
  revoke: {
    title: 'Revoke',
    effect: 'The stored credentials are deleted, and its syncs stop. The connection, its rows and its states stay.',
    button: 'Revoke connection',
  },
  remove: {
    title: 'Remove',
    effect: 'The connection and its credentials are deleted, and its syncs stop. Their rows and states stay.',
    button: 'Remove connection',
  },
}

/** Says what is deleted, and needs the name. */
function EndDialog({
  connection: { name },
  ending,
  onClose,
}: {
  connection: ConnectionDocument
  ending: Ending
  onClose: () => void
}) {
  const client = useQueryClient()
  const [typed, setTyped] = useState('')
  const { title, effect, button } = ENDINGS[ending]
  const end = useMutation({
    mutationFn: () =>
      ending === 'remove' ? remove(path`/api/connections/${name}`) : post(path`/api/connections/${name}/revoke`, {}),
    onSuccess: async () => {
      await client.invalidateQueries()
      onClose()
    },
  })
  return (
    <Dialog
      title={`${title} ${name}`}
      onClose={onClose}
      actions={
        <button type="submit" form="end" className="danger primary" disabled={typed !== name || end.isPending}>
          {button}
        </button>
      }
    >
      <form
        id="end"
        onSubmit={(event) => {
          event.preventDefault()
          end.mutate()
        }}
      >
        <p>{effect} This cannot be undone.</p>
        <label htmlFor="end-name">
          Type <b>{name}</b> to confirm
        </label>
        <input id="end-name" autoComplete="off" value={typed} onChange={(event) => setTyped(event.target.value)} />
        {end.error !== null && (
          <p className="field-error" role="alert">
            {end.error.message}
          </p>
        )}
      </form>
    </Dialog>
  )
}
