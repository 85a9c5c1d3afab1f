import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { KeyDocument, TenantsDocument } from '../../../src/server/console/documents.ts'
import { get, path, post } from '../api.ts'
import { Command } from '../components/command.tsx'
import { DataTable } from '../components/data-table.tsx'
import { Dialog } from '../components/dialog.tsx'
import { EmptyState, QueryView } from '../components/query-states.tsx'
import { Timestamp } from '../components/time.tsx'
import { formatCount } from '../format.ts'
import { useSession } from '../session.tsx'

const SCOPES_SHOWN = 6

export function AccessPage() {
  const { session, hasScope } = useSession()
  const [isCreating, setIsCreating] = useState(false)
  const [revoking, setRevoking] = useState<KeyDocument | null>(null)
  const keys = useQuery({
    queryKey: ['keys'],
    queryFn: ({ signal }) => get<{ data: KeyDocument[] }>('/console/api/keys', signal),
  })
  return (
    <>
      <h1>Access</h1>
      <section aria-labelledby="tenant">
        <h2 id="tenant">Session</h2>
        <dl className="facts">
          <div>
            <dt>Tenant</dt>
            <dd>{session.tenant}</dd>
          </div>
          <div>
            <dt>Key</dt>
            <dd className="clamped" title={session.key ?? ''}>
              {session.key ?? 'none'}
            </dd>
            <dd className="quiet">{session.key === null ? 'local access without a key' : 'name of the key'}</dd>
          </div>
          <div>
            <dt>Permissions</dt>
            <dd className="clamped" title={session.scopes.join(', ')}>
              {session.scopes.join(', ')}
            </dd>
            <dd className="quiet">{session.scopes.includes('admin') ? 'full access' : 'scopes of the key'}</dd>
          </div>
          <div>
            <dt>Databases</dt>
            <dd>{session.databases}</dd>
            <dd className="quiet">of this tenant</dd>
          </div>
          <div>
            <dt>Sequence</dt>
            <dd>{formatCount(session.headSequence)}</dd>
            <dd className="quiet">when the session started</dd>
          </div>
        </dl>
      </section>
      <TenantsSection own={session.tenant} />
      <section aria-labelledby="keys">
        <div className="title-bar">
          <h2 id="keys">Keys</h2>
          {hasScope('admin') && (
            <button type="button" className="primary" onClick={() => setIsCreating(true)}>
              New key…
            </button>
          )}
        </div>
        <QueryView of={keys}>
          {({ data }) =>
            data.length === 0 ? (
              <EmptyState title="No keys">Create a key to read the feed.</EmptyState>
            ) : (
              <DataTable
                label="Keys"
                rows={data}
                keyOf={({ id }) => id}
                columns={[
                  {
                    title: 'Name',
                    cell: ({ name }) => (
                      <span className="clamped" title={name}>
                        {name}
                      </span>
                    ),
                  },
                  { title: 'Id', cell: ({ id }) => <code className="whole">{id}</code> },
                  {
                    title: 'Scopes',
                    isWide: true,
                    cell: ({ scopes }) => (
                      <span className="tags" title={scopes.join(', ')}>
                        {scopes.slice(0, SCOPES_SHOWN).map((scope) => (
                          <span key={scope} className="tag">
                            {scope}
                          </span>
                        ))}
                        {scopes.length > SCOPES_SHOWN && (
                          <span className="tag">and {scopes.length - SCOPES_SHOWN} more</span>
                        )}
                      </span>
                    ),
                  },
                  { title: 'Requests/min', isNumber: true, cell: ({ rateLimit }) => formatCount(rateLimit) },
                  { title: 'Created', cell: ({ createdAt }) => <Timestamp at={createdAt} /> },
                  {
                    title: 'Status',
                    cell: ({ isValid, endsAt }) =>
                      isValid ? (
                        <span className="tag tag-created">
                          {endsAt === null ? (
                            'valid'
                          ) : (
                            <>
                              until <Timestamp at={endsAt} />
                            </>
                          )}
                        </span>
                      ) : (
                        <span className="tag">inactive</span>
                      ),
                  },
                  {
                    title: '',
                    cell: (key) =>
                      key.isValid ? (
                        <button
                          type="button"
                          className="small danger"
                          onClick={() => setRevoking(key)}
                          aria-label={`Revoke ${key.name}`}
                        >
                          Revoke…
                        </button>
                      ) : null,
                  },
                ]}
              />
            )
          }
        </QueryView>
      </section>
      {isCreating && <NewKeyDialog onClose={() => setIsCreating(false)} />}
      {revoking !== null && <RevokeKeyDialog given={revoking} onClose={() => setRevoking(null)} />}
    </>
  )
}

/** Shows counts only. */
function TenantsSection({ own }: { own: string }) {
  const tenants = useQuery({
    queryKey: ['tenants'],
    queryFn: ({ signal }) => get<{ data: TenantsDocument }>('/console/api/tenants', signal),
  })
  return (
    <section aria-labelledby="tenants">
      <h2 id="tenants">Tenants</h2>
      <p className="quiet">All tenants of this store. To see the data of a tenant, sign in with one of its keys.</p>
      <QueryView of={tenants} lines={3}>
        {({ data }) => (
          <>
            <DataTable
              label="Tenants"
              rows={data.tenants}
              keyOf={({ tenant }) => tenant}
              columns={[
                {
                  title: 'Tenant',
                  isWide: true,
                  cell: ({ tenant }) => (
                    <>
                      {tenant} {tenant === own && <span className="tag">current</span>}
                    </>
                  ),
                },
                { title: 'Syncs', isNumber: true, cell: ({ syncs }) => formatCount(syncs) },
                { title: 'Databases', isNumber: true, cell: ({ databases }) => formatCount(databases) },
                { title: 'Rows', isNumber: true, cell: ({ rows }) => formatCount(rows) },
                { title: 'Changes', isNumber: true, cell: ({ changes }) => formatCount(changes) },
              ]}
            />
            {data.isCut && (
              <p className="quiet">
                The list is truncated; <code>npx tidemark tenants list</code> shows all tenants.
              </p>
            )}
          </>
        )}
      </QueryView>
    </section>
  )
}

function NewKeyDialog({ onClose }: { onClose: () => void }) {
  const client = useQueryClient()
  const [name, setName] = useState('')
  const [scopes, setScopes] = useState('changes:read,*:read')
  const create = useMutation({
    mutationFn: () =>
      post<{ data: { id: string; text: string } }>('/console/api/keys', {
        name,
        scopes: scopes.split(',').map((scope) => scope.trim()),
      }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['keys'] }),
  })
  if (create.data !== undefined)
    return (
      <Dialog title={`Key ${name} created`} onClose={onClose}>
        <p>Copy the key now. It is shown only once; only a hash of it is stored.</p>
        <Command label="Key" text={create.data.data.text} />
      </Dialog>
    )
  return (
    <Dialog
      title="New key"
      onClose={onClose}
      actions={
        <button type="submit" form="new-key" className="primary" disabled={name.trim() === '' || create.isPending}>
          Create key
        </button>
      }
    >
      <form
        id="new-key"
        onSubmit={(event) => {
          event.preventDefault()
          create.mutate()
        }}
      >
        <label htmlFor="key-name">Name</label>
        <input id="key-name" required maxLength={100} value={name} onChange={(event) => setName(event.target.value)} />
        <label htmlFor="key-scopes">Scopes</label>
        <input
          id="key-scopes"
          required
          value={scopes}
          onChange={(event) => setScopes(event.target.value)}
          aria-describedby="key-scopes-help"
        />
        <p id="key-scopes-help" className="quiet">
          changes:read, &lt;database&gt;:read, *:read, sync:read, sync:write, admin
        </p>
        {create.error !== null && (
          <p className="field-error" role="alert">
            {create.error.message}
          </p>
        )}
      </form>
    </Dialog>
  )
}

function RevokeKeyDialog({ given, onClose }: { given: KeyDocument; onClose: () => void }) {
  const client = useQueryClient()
  const revoke = useMutation({
    mutationFn: () => post(path`/console/api/keys/${given.id}/revoke`),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ['keys'] })
      onClose()
    },
  })
  return (
    <Dialog
      title={`Revoke ${given.name}`}
      onClose={onClose}
      actions={
        <button type="button" className="danger primary" disabled={revoke.isPending} onClick={() => revoke.mutate()}>
          Revoke key
        </button>
      }
    >
      <p>
        Requests with key <code>{given.id}</code> are rejected within a second, and its open streams are closed. This
        cannot be undone.
      </p>
      {revoke.error !== null && (
        <p className="field-error" role="alert">
          {revoke.error.message}
        </p>
      )}
    </Dialog>
  )
}
