import assert from 'node:assert/strict'
import type { Store } from '../../contract/index.ts'
import { rule, START, type StoreCase } from './harness.ts'

const ID = 'a'.repeat(64)
const SESSION = { id: ID, browser: 'b'.repeat(64), createdAt: START, expiresAt: START + 900_000 }
const SECRETS = '{"codeVerifier":"v"}'

export const connectSessionCases: readonly StoreCase[] = [
  rule(
    'a connect session is found by its id from every tenant, and its secrets only by its own',
    async ({ store, reopen }) => {
      const acme = store.forTenant('acme')
      await acme.addConnectSession(SESSION, SECRETS)
      const again = await reopen()
      const found = { ...SESSION, tenant: 'acme', status: 'open', version: 1 }
      assert.deepEqual(await again.connectSession(ID, START), found)
      assert.deepEqual(await again.forTenant('other').connectSession(ID, START), found)
      assert.equal(await again.connectSession('c'.repeat(64), START), null)
      assert.equal(await again.connectSecrets(ID), null)
      assert.deepEqual(await again.forTenant('acme').connectSecrets(ID), { version: 1, secrets: SECRETS })
      assert.equal(await move(again, 1), false)
    },
  ),
  rule('of concurrent uses of a connect session one succeeds', async ({ store, reopen }) => {
    await store.addConnectSession(SESSION, SECRETS)
    const other = await reopen()
    const moves = await Promise.all([store, other, store, other].map((one) => move(one, 1)))
    assert.deepEqual(
      moves.toSorted((a, b) => Number(a) - Number(b)),
      [false, false, false, true],
    )
    assert.equal((await store.connectSession(ID, START))?.status, 'authorizing')
    assert.deepEqual(await store.connectSecrets(ID), { version: 2, secrets: 'moved' })
    assert.equal(await move(store, 1), false)
    assert.equal(await move(store, 2), true)
  }),
  rule(
    'an expired connect session is not found, cannot be used, and is deleted by the next ones',
    async ({ store }) => {
      await store.addConnectSession(SESSION, SECRETS)
      assert.equal(await store.connectSession(ID, SESSION.expiresAt), null)
      assert.equal(await move(store, 1, SESSION.expiresAt), false)
      const later = { ...SESSION, id: 'd'.repeat(64), createdAt: SESSION.expiresAt, expiresAt: SESSION.expiresAt + 1 }
      await store.addConnectSession(later, SECRETS)
      assert.equal(await store.connectSecrets(ID), null)
      assert.notEqual(await store.connectSecrets(later.id), null)
    },
  ),
  rule('a new connect session deletes a bounded number of expired ones, the oldest first', async ({ store }) => {
    const idOf = (n: number): string => n.toString(16).padStart(64, '0')
    for (let n = 0; n < 102; n++)
      await store.addConnectSession({ ...SESSION, id: idOf(n), expiresAt: START + 1 + n }, SECRETS)
    await store.addConnectSession({ ...SESSION, id: idOf(200), createdAt: START + 500 }, SECRETS)
    const rest = await Promise.all([99, 100, 101].map(async (n) => (await store.connectSecrets(idOf(n))) !== null))
    assert.deepEqual(rest, [false, true, true])
  }),
  rule('an erased tenant has no connect sessions', async ({ store }) => {
    const acme = store.forTenant('acme')
    await acme.addConnectSession(SESSION, SECRETS)
    await acme.eraseTenant({ actor: 'operator', at: START })
    assert.equal(await store.connectSession(ID, START), null)
  }),
]

function move(store: Store, replaces: number, at = START): Promise<boolean> {
  return store.moveConnectSession(ID, { replaces, status: 'authorizing', secrets: 'moved', at })
}
