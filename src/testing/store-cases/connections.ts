import assert from 'node:assert/strict'
import type { Connection, ConnectionWrite, Store } from '../../contract/index.ts'
import { required } from '../../values/required.ts'
import { OPERATOR, rule, START, type StoreCase } from './harness.ts'

export const connectionCases: readonly StoreCase[] = [
  rule('a connection is stored as it was written, and another tenant sees none of it', async ({ store, reopen }) => {
    const added = await add(store)
    const again = await reopen()
    assert.deepEqual(added, {
      name: 'shop',
      provider: 'stripe',
      status: 'active',
      statusReason: null,
      settings: WRITE.settings,
      scopes: ['read', 'write'],
      account: WRITE.account,
      createdAt: START,
      updatedAt: START,
      version: 1,
      credentialsVersion: 1,
    })
    assert.deepEqual(await again.connections(), [added])
    assert.deepEqual(await again.connection('shop'), added)
    assert.deepEqual(await again.connectionCredentials('shop'), { connection: added, credentials: SECRETS })
    assert.deepEqual(await store.connections(), [added])
    const acme = again.forTenant('acme')
    assert.deepEqual(await acme.connections(), [])
    assert.equal(await acme.connection('shop'), null)
    assert.equal(await acme.connectionCredentials('shop'), null)
    assert.equal(await acme.swapCredentials('shop', { credentials: 'x', replaces: ADDED, at: START }), false)
    assert.equal(await acme.setConnectionStatus('shop', { status: 'disabled', reason: '' }, OPERATOR), false)
    assert.equal(await acme.removeConnection('shop', OPERATOR), false)
    assert.deepEqual(await again.connections(), [added])
  }),
  rule('a connection is replaced only from the versions that the writer has read', async ({ store }) => {
    const added = await add(store)
    assert.equal(await store.putConnection(WRITE, OPERATOR), null)
    const change = { ...WRITE, settings: { url: 'https://two.example' }, replaces: ADDED }
    const unread = { ...ADDED, credentialsVersion: 2 }
    assert.equal(await store.putConnection({ ...change, credentials: 'other', replaces: unread }, OPERATOR), null)
    const { credentials: _, ...settings } = change
    const changed = await store.putConnection(settings, { ...OPERATOR, at: START + 1 })
    assert.deepEqual(changed, { ...added, settings: change.settings, version: 2, updatedAt: START + 1 })
    assert.equal((await store.connectionCredentials('shop'))?.credentials, SECRETS)
    assert.equal(await store.putConnection(change, OPERATOR), null)
    const authorized = required(
      await store.putConnection({ ...change, replaces: { ...ADDED, version: 2 }, credentials: 'new' }, OPERATOR),
      'the changed connection',
    )
    assert.deepEqual([authorized.version, authorized.credentialsVersion], [3, 2])
    assert.equal((await store.connectionCredentials('shop'))?.credentials, 'new')
  }),
  rule(
    'credentials are renewed only from the version that was read, however often they are renewed',
    async ({ store }) => {
      const added = await add(store)
      const swaps = await Promise.all(
        ['one', 'two', 'three'].map((credentials) =>
          store.swapCredentials('shop', { credentials, replaces: ADDED, at: START }),
        ),
      )
      assert.equal(swaps.filter(Boolean).length, 1)
      assert.deepEqual(await store.connection('shop'), { ...added, credentialsVersion: 2 })
      assert.equal(
        await store.swapCredentials('shop', {
          credentials: 'four',
          replaces: { ...ADDED, credentialsVersion: 2 },
          at: START,
        }),
        true,
      )
      assert.equal((await store.connectionCredentials('shop'))?.credentials, 'four')
    },
  ),
  rule('the status of a connection is not changed on account of credentials that were replaced', async ({ store }) => {
    await add(store)
    const refused = { status: 'needs_reauthorization', reason: 'invalid_grant', credentials: ADDED } as const
    assert.equal(await store.swapCredentials('shop', { credentials: 'new', replaces: ADDED, at: START }), true)
    assert.equal(await store.setConnectionStatus('shop', refused, OPERATOR), false)
    assert.equal((await find(store)).status, 'active')
    assert.equal(
      await store.setConnectionStatus(
        'shop',
        { ...refused, credentials: { ...ADDED, credentialsVersion: 2 } },
        OPERATOR,
      ),
      true,
    )
    const stopped = await find(store)
    assert.deepEqual(
      [stopped.status, stopped.statusReason, stopped.version],
      ['needs_reauthorization', 'invalid_grant', 2],
    )
    assert.equal(await store.setConnectionStatus('shop', { status: 'active', reason: 'checked' }, OPERATOR), true)
    assert.equal((await find(store)).statusReason, null)
    assert.equal(await store.setConnectionStatus('none', { status: 'disabled', reason: '' }, OPERATOR), false)
  }),
  rule('a process that has read a removed connection changes nothing of a later one', async ({ store }) => {
    await add(store)
    await store.removeConnection('shop', OPERATOR)
    const later = required(await store.putConnection(WRITE, { ...OPERATOR, at: START + 1 }), 'the later connection')
    const refused = { status: 'needs_reauthorization', reason: 'invalid_grant', credentials: ADDED } as const
    assert.equal(await store.swapCredentials('shop', { credentials: 'old', replaces: ADDED, at: START }), false)
    assert.equal(await store.setConnectionStatus('shop', refused, OPERATOR), false)
    assert.equal(await store.putConnection({ ...WRITE, replaces: ADDED }, OPERATOR), null)
    const { credentials: _, ...settings } = WRITE
    assert.equal(await store.putConnection({ ...settings, replaces: ADDED }, OPERATOR), null)
    assert.deepEqual(await store.connectionCredentials('shop'), { connection: later, credentials: SECRETS })
    assert.equal(await store.swapCredentials('shop', { credentials: 'new', replaces: later, at: START }), true)
  }),
  rule('every change of a connection but a renewal is in the audit log, without credentials', async ({ store }) => {
    await add(store)
    await store.putConnection({ ...WRITE, replaces: ADDED, credentials: 'canary-2' }, OPERATOR)
    await store.swapCredentials('shop', {
      credentials: 'canary-3',
      replaces: { ...ADDED, credentialsVersion: 2 },
      at: START,
    })
    await store.setConnectionStatus('shop', { status: 'disabled', reason: 'holiday' }, OPERATOR)
    await store.removeConnection('shop', { ...OPERATOR, reason: 'the customer left' })
    const { entries } = await store.auditChain({ after: 0, limit: 100 })
    const own = entries.filter(({ action }) => action.startsWith('connection-'))
    assert.deepEqual(
      own.map(({ action, reason, actor }) => [action, reason, actor]),
      [
        ['connection-add', 'shop: stripe; account acct_1', OPERATOR.actor],
        ['connection-authorize', 'shop: stripe; account acct_1', OPERATOR.actor],
        ['connection-disabled', 'shop: holiday', OPERATOR.actor],
        ['connection-remove', 'shop: the customer left', OPERATOR.actor],
      ],
    )
    assert.ok(!JSON.stringify(entries).includes('canary'))
  }),
  rule('a reader of all tenants sees each change of a list once, and no renewal', async ({ store }) => {
    const seen = async (since: string | null) => store.connectionChanges({ since, limit: 100 })
    const first = await seen(null)
    assert.deepEqual([first.tenants, first.hasMore], [[], false])
    const acme = store.forTenant('acme')
    await add(acme)
    const second = await seen(first.changeToken)
    assert.deepEqual(second.tenants, [
      {
        tenant: 'acme',
        connections: [
          { name: 'shop', provider: 'stripe', status: 'active', statusReason: null, version: 1, updatedAt: START },
        ],
      },
    ])
    await acme.swapCredentials('shop', { credentials: 'new', replaces: ADDED, at: START })
    assert.deepEqual((await seen(second.changeToken)).tenants, [])
    await add(store)
    await acme.setConnectionStatus('shop', { status: 'disabled', reason: 'holiday' }, OPERATOR)
    const third = await seen(second.changeToken)
    assert.deepEqual(
      third.tenants.map(({ tenant, connections }) => [tenant, connections[0]?.status]),
      [
        [store.tenant, 'active'],
        ['acme', 'disabled'],
      ],
    )
    await acme.removeConnection('shop', OPERATOR)
    const fourth = await seen(third.changeToken)
    assert.deepEqual(fourth.tenants, [{ tenant: 'acme', connections: [] }])
    assert.deepEqual((await seen(fourth.changeToken)).tenants, [])
    // A token of a store that was restored since: everything is listed again.
    assert.equal((await seen('1000')).tenants.length, 2)
  }),
  rule('a list of many changed tenants is read in parts', async ({ store }) => {
    const names = ['a', 'b', 'c', 'd', 'e']
    for (const name of names) {
      await add(store.forTenant(name))
      await add(store.forTenant(name), 'other')
    }
    const found: string[] = []
    for (let since: string | null = null, more = true; more;) {
      const page = await store.connectionChanges({ since, limit: 2 })
      for (const { tenant, connections } of page.tenants) found.push(`${tenant}${connections.length}`)
      ;[since, more] = [page.changeToken, page.hasMore]
    }
    assert.deepEqual(found, ['a2', 'b2', 'c2', 'd2', 'e2'])
  }),
  rule('an erased tenant loses its connections, and readers of all tenants see it', async ({ store }) => {
    const acme = store.forTenant('acme')
    await add(acme)
    const { changeToken } = await store.connectionChanges({ since: null, limit: 10 })
    assert.equal((await acme.eraseTenant(OPERATOR)).kind, 'erased')
    assert.equal(await acme.connectionCredentials('shop'), null)
    assert.deepEqual((await store.connectionChanges({ since: changeToken, limit: 10 })).tenants, [
      { tenant: 'acme', connections: [] },
    ])
    assert.equal((await add(acme)).version, 1)
  }),
]

const SECRETS = '{"kind":"api_key","key":"canary ü","fields":{}}'

const WRITE: ConnectionWrite = {
  name: 'shop',
  provider: 'stripe',
  status: 'active',
  statusReason: null,
  settings: { url: 'https://shop.example/ü', depth: { list: [1, null, true] } },
  scopes: ['read', 'write'],
  account: { id: 'acct_1', label: 'Ada’s shop' },
  replaces: null,
  credentials: SECRETS,
}

/** The connection that `add` makes, as a writer has read it. */
const ADDED = { createdAt: START, version: 1, credentialsVersion: 1 }

async function add(store: Store, name = 'shop'): Promise<Connection> {
  return required(await store.putConnection({ ...WRITE, name }, { actor: OPERATOR.actor, at: START }), 'the connection')
}

async function find(store: Store): Promise<Connection> {
  return required(await store.connection('shop'), 'the connection')
}
