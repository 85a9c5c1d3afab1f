import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import type { Commit, Store } from '../../src/contract/index.ts'
import { DataKeys } from '../../src/registry/data-keys.ts'
import { KeyRing, generateMasterKey } from '../../src/registry/key-ring.ts'
import { sealStore } from '../../src/registry/sealed-store.ts'
import { verifyAuditChain } from '../../src/registry/verify-audit-chain.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { SyncDriver } from '../../src/testing/store-cases/harness.ts'

const RING = new KeyRing([generateMasterKey(randomBytes)])
const STATES = ['one', 'two'].map((key) => ({ key, state: `{"token":"secret of ${key}"}` }))

async function open(): Promise<{ raw: Store; store: Store; driver: SyncDriver }> {
  const raw = await openSqliteStore({ file: ':memory:' })
  const store = sealStore(raw, RING, randomBytes)
  const driver = await SyncDriver.acquire(store)
  await driver.cycle([], { partitions: STATES })
  return { raw, store, driver }
}

/** Writes a partition as it is, past the sealing. */
async function writeRaw(raw: Store, { lease, version }: SyncDriver, key: string, state: string): Promise<void> {
  const commit: Commit = {
    lease,
    version,
    at: 0,
    transition: { kind: 'replay', actor: 'sql', reason: '', superseded: [] },
    owner: 'crm/delta',
    landings: [],
    quarantined: [],
    columns: {},
    readAtSequence: 0,
    upstreamToleranceMs: 0,
    partitions: [{ key, state }],
  }
  expect((await raw.commit(commit)).kind).toBe('landed')
}

test('Z4 states of partitions are sealed, and open only in their own partition', async () => {
  const { raw, store, driver } = await open()
  const stored = await raw.partitions(driver.ref, { limit: 10 })
  expect(JSON.stringify(stored)).not.toContain('secret')
  expect((await store.partitions(driver.ref, { limit: 10 })).map(({ key, state }) => ({ key, state }))).toEqual(STATES)
  expect(await verifyAuditChain(store)).toMatchObject({ intact: true, states: [] })

  await writeRaw(raw, driver, 'two', stored[0]!.state)
  await expect(store.partitionStates(driver.ref, ['two'])).rejects.toMatchObject({ code: 'STATE_UNREADABLE' })
  await expect(store.partitions(driver.ref, { limit: 10 })).rejects.toMatchObject({ code: 'STATE_UNREADABLE' })
  expect(await verifyAuditChain(store)).toMatchObject({ intact: false, states: [{ sync: 'delta' }] })
  const other = await SyncDriver.acquire(store, { sync: 'other' })
  await other.cycle([], { partitions: STATES })
  await writeRaw(raw, other, 'one', stored[0]!.state)
  await expect(store.partitionStates(other.ref, ['one'])).rejects.toMatchObject({ code: 'STATE_UNREADABLE' })
  // An operator who sets the state removes them.
  await driver.set(null)
  expect(await verifyAuditChain(store)).toMatchObject({ states: [{ sync: 'other' }] })
})

test('an older state of a partition opens: it only makes the source return rows again', async () => {
  const { raw, store, driver } = await open()
  const [older] = await raw.partitions(driver.ref, { limit: 1 })
  await driver.cycle([], { partitions: [{ key: 'one', state: '"newer"' }] })
  await writeRaw(raw, driver, 'one', older!.state)
  expect(await store.partitionStates(driver.ref, ['one'])).toMatchObject([{ state: STATES[0]!.state }])
  expect(await verifyAuditChain(store)).toMatchObject({ intact: true })
})

test('Z4 states of partitions are sealed again under a new data key, and never written with the old one', async () => {
  const { raw, store, driver } = await open()
  const [old] = await raw.dataKeys()
  await new DataKeys(raw, RING, randomBytes).rotate('ana', 5)
  const newest = (await raw.dataKeys()).at(-1)
  expect(await raw.sealedTexts({ except: newest!.id, limit: 10 })).toEqual([])
  expect(
    (await raw.sealedTexts({ except: 'none', limit: 10 })).filter(({ table }) => table === 'partitions'),
  ).toHaveLength(2)
  expect((await store.partitions(driver.ref, { limit: 10 })).map(({ key, state }) => ({ key, state }))).toEqual(STATES)
  // A process that still has the old key in memory: nothing else in this commit is sealed.
  await driver.cycle([], { partitions: [{ key: 'three', state: '3' }] })
  const [three] = await raw.partitionStates(driver.ref, ['three'])
  expect(three!.state).toContain(`.${newest!.id}.`)
  expect(three!.state).not.toContain(`.${old!.id}.`)
})
