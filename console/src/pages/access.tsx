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
  const { session, hasScope: may } = useSession()
  const [makes, setMakes] = useState(false)
  const [ends, setEnds] = useState<KeyDocument | null>(null)
  const keys = useQuery({ queryKey: ['keys'], queryFn: ({ signal }) => get<{ data: KeyDocument[] }>('/console/api/keys', signal) })
  return (
    <>
      <h1>Access</h1>
      <section aria-labelledby="tenant">
        <h2 id="tenant">You</h2>
        <dl className="facts">
          <div><dt>Tenant</dt><dd>{session.tenant}</dd><dd className="quiet">nothing crosses it</dd></div>
          <div><dt>You are</dt><dd className="clamped" title={session.key ?? ''}>{session.key ?? 'on this machine'}</dd><dd className="quiet">{session.key === null ? 'no key is asked for' : 'by this key'}</dd></div>
          <div><dt>You may</dt><dd className="clamped" title={session.scopes.join(', ')}>{session.scopes.join(', ')}</dd><dd className="quiet">{session.scopes.includes('admin') ? 'everything' : 'what the scopes name'}</dd></div>
          <div><dt>Databases</dt><dd>{session.databases}</dd><dd className="quiet">landed for this tenant</dd></div>
          <div><dt>Sequence</dt><dd>{formatCount(session.position)}</dd><dd className="quiet">when this page was opened</dd></div>
        </dl>
      </section>
      <TenantsSection own={session.tenant} />
      <section aria-labelledby="keys">
        <div className="title-bar"><h2 id="keys">Keys</h2>{may('admin') && <button type="button" className="primary" onClick={() => setMakes(true)}>New key…</button>}</div>
        <QueryView of={keys}>
          {({ data }) => data.length === 0 ? <EmptyState title="There are no keys">Whoever reads the feed needs one.</EmptyState> : (
            <DataTable
              label="Keys" rows={data} keyOf={({ id }) => id}
              columns={[
                { title: 'Name', cell: ({ name }) => <span className="clamped" title={name}>{name}</span> },
                { title: 'Id', cell: ({ id }) => <code className="whole">{id}</code> },
                { title: 'Scopes', isWide: true, cell: ({ scopes }) => <span className="tags" title={scopes.join(', ')}>{scopes.slice(0, SCOPES_SHOWN).map((scope) => <span key={scope} className="tag">{scope}</span>)}{scopes.length > SCOPES_SHOWN && <span className="tag">and {scopes.length - SCOPES_SHOWN} more</span>}</span> },
                { title: 'A minute', isNumber: true, cell: ({ rateLimit }) => formatCount(rateLimit) },
                { title: 'Made', cell: ({ createdAt }) => <Timestamp at={createdAt} /> },
                { title: 'Status', cell: ({ isValid, endsAt }) => (isValid ? <span className="tag tag-created">{endsAt === null ? 'valid' : <>until <Timestamp at={endsAt} /></>}</span> : <span className="tag">ended</span>) },
                { title: '', cell: (key) => (key.isValid ? <button type="button" className="small danger" onClick={() => setEnds(key)} aria-label={`Revoke ${key.name}`}>Revoke…</button> : null) },
              ]}
            />
          )}
        </QueryView>
      </section>
      {makes && <NewKeyDialog onClose={() => setMakes(false)} />}
      {ends !== null && <RevokeKeyDialog given={ends} onClose={() => setEnds(null)} />}
    </>
  )
}

/** Shows counts only. */
function TenantsSection({ own }: { own: string }) {
  const asked = useQuery({ queryKey: ['tenants'], queryFn: ({ signal }) => get<{ data: TenantsDocument }>('/console/api/tenants', signal) })
  return (
    <section aria-labelledby="tenants">
      <h2 id="tenants">Tenants</h2>
      <p className="quiet">Of this store. Nothing of one is shown to another: to look into one, use a key of it.</p>
      <QueryView of={asked} lines={3}>
        {({ data }) => (
          <>
            <DataTable
              label="Tenants" rows={data.tenants} keyOf={({ tenant }) => tenant}
              columns={[
                { title: 'Tenant', isWide: true, cell: ({ tenant }) => <>{tenant} {tenant === own && <span className="tag">you</span>}</> },
                { title: 'Syncs', isNumber: true, cell: ({ syncs }) => formatCount(syncs) },
                { title: 'Databases', isNumber: true, cell: ({ databases }) => formatCount(databases) },
                { title: 'Rows', isNumber: true, cell: ({ rows }) => formatCount(rows) },
                { title: 'Changes', isNumber: true, cell: ({ changes }) => formatCount(changes) },
              ]}
            />
            {data.isCut && <p className="quiet">There are more; <code>npx tidemark tenants list</code> tells of all.</p>}
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
  const make = useMutation({
    mutationFn: () => post<{ data: { id: string; text: string } }>('/console/api/keys', { name, scopes: scopes.split(',').map((scope) => scope.trim()) }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['keys'] }),
  })
  if (make.data !== undefined) return <Dialog title={`The key ${name}`} onClose={onClose}><p>It is shown this once; only a hash of it is kept.</p><Command label="The key" text={make.data.data.text} /></Dialog>
  return (
    <Dialog title="New key" onClose={onClose} actions={<button type="submit" form="new-key" className="primary" disabled={name.trim() === '' || make.isPending}>Make it</button>}>
      <form id="new-key" onSubmit={(event) => { event.preventDefault(); make.mutate() }}>
        <label htmlFor="key-name">What it is for</label>
        <input id="key-name" required maxLength={100} value={name} onChange={(event) => setName(event.target.value)} />
        <label htmlFor="key-scopes">Scopes</label>
        <input id="key-scopes" required value={scopes} onChange={(event) => setScopes(event.target.value)} aria-describedby="key-scopes-help" />
        <p id="key-scopes-help" className="quiet">changes:read, &lt;database&gt;:read, *:read, sync:read, sync:write, admin</p>
        {make.error !== null && <p className="field-error" role="alert">{make.error.message}</p>}
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
    <Dialog title={`Revoke ${given.name}`} onClose={onClose} actions={<button type="button" className="danger primary" disabled={revoke.isPending} onClick={() => revoke.mutate()}>Revoke it</button>}>
      <p>Whoever uses key <code>{given.id}</code> is refused within a second, open streams included. It cannot be undone.</p>
      {revoke.error !== null && <p className="field-error" role="alert">{revoke.error.message}</p>}
    </Dialog>
  )
}
