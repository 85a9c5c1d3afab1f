import { randomBytes } from 'node:crypto'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Store } from '../../src/contract/index.ts'
import { DataKeys } from '../../src/registry/data-keys.ts'
import { KeyRing, generateMasterKey } from '../../src/registry/key-ring.ts'
import { sealStore } from '../../src/registry/sealed-store.ts'
import { verifyAuditChain } from '../../src/registry/verify-audit-chain.ts'
import { SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import type { OpenedStore } from './rolled-back-cases.ts'

const [leaked, fresh] = [generateMasterKey(randomBytes), generateMasterKey(randomBytes)]
const OLD = new KeyRing([leaked])
const BOTH = new KeyRing([fresh, leaked])
const NEW = new KeyRing([fresh])
const OFFER = { secret: 'cursor-secret', createdAt: 1, rotateAfterMs: 1_000, retainMs: 1_000 }

export function describeDataKeys(name: string, open: () => Promise<OpenedStore>): void {
  describe(`data key rotation on ${name}`, () => {
    test('Z4 all stored texts are sealed again under a new data key, while another process works with the old one', async () => {
      const { store, keys } = await openFilled(open)
      const running = sealStore(store, OLD, randomBytes)
      const busy = await SyncDriver.acquire(running, { sync: 'busy' })
      await busy.cycle([upsert('x', { n: 1 })], { state: '"before"' })
      const [old] = await store.dataKeys()
      const { resealed, removed, kept } = await keys(BOTH).rotate('ana', 5)
      await keys(BOTH).rewrap('ana', 5)
      expect([resealed > 0, removed, kept]).toEqual([true, [], [old!.id]])
      const newest = (await store.dataKeys()).at(-1)!
      expect(newest).toMatchObject({ wrappedBy: fresh.id })
      expect(await store.sealedTexts({ except: newest.id, limit: 10 })).toEqual([])
      // With the new master key alone everything opens, including the history.
      const after = sealStore(store, NEW, randomBytes)
      expect(await after.readCheckpoint({ worker: 'crm', sync: 'delta' })).toMatchObject({
        committed: '"committed"',
        inflight: { state: '"page"' },
      })
      expect((await after.webhooks())[0]!.secrets).toBe('webhook-secret')
      expect(await after.cursorSecrets({ ...OFFER, secret: 'other' })).toMatchObject([{ secret: 'cursor-secret' }])
      expect((await after.audit({ worker: 'crm', sync: 'delta' }))[0]).toMatchObject({ state: '"committed"' })
      expect(await verifyAuditChain(after)).toMatchObject({ intact: true, states: [] })
      // A later state does not open with the leaked master key, nor with the data key it wrapped.
      await (await SyncDriver.acquire(after, { sync: 'delta' })).set('"later"')
      await expect(
        sealStore(store, OLD, randomBytes).readCheckpoint({ worker: 'crm', sync: 'delta' }),
      ).rejects.toMatchObject({ code: 'STATE_UNREADABLE' })
    })

    test('Z4 a process with the old data key in memory writes nothing with it any more, and continues', async () => {
      const { store, keys } = await openFilled(open)
      const running = sealStore(store, BOTH, randomBytes)
      const busy = await SyncDriver.acquire(running, { sync: 'busy' })
      await busy.cycle([upsert('x', { n: 1 })], { state: '"before"' })
      await keys(BOTH).rotate('ana', 5)
      const newest = (await store.dataKeys()).at(-1)!
      await busy.cycle([upsert('x', { n: 2 })], { state: '"after"' })
      const secrets = (await running.webhooks())[0]!.secrets
      expect(await running.rotateWebhook('wh', 'rotated', { actor: 'ana', at: 6, replaces: secrets })).toBe(true)
      expect(await store.sealedTexts({ except: newest.id, limit: 10 })).toEqual([])
      expect(await running.readCheckpoint(busy.ref)).toMatchObject({ committed: '"after"' })
      // If the key is replaced after the last read of a cycle, only the write detects it.
      await busy.begin()
      await keys(BOTH).rotate('ana', 7)
      await busy.complete([upsert('x', { n: 3 })], { state: '"during"' })
      expect(await running.readCheckpoint(busy.ref)).toMatchObject({ committed: '"during"' })
      expect(await store.sealedTexts({ except: (await store.dataKeys()).at(-1)!.id, limit: 10 })).toEqual([])
      const texts = await store.sealedTexts({ except: 'none', limit: 100 })
      const committed = texts.find(({ column }) => column === 'committed')!
      const current = (await store.dataKeys()).at(-1)!
      await expect(store.reseal(committed, committed.text.replace(current.id, 'd00000000'))).rejects.toMatchObject({
        code: 'DATA_KEY_REPLACED',
      })
    })

    test('Z4 a data key that was moved to another tenant does not open there', async () => {
      const { store, keys } = await openFilled(open)
      const [moved] = await store.dataKeys()
      const other = store.forTenant('other')
      await other.putDataKey(moved!, { actor: 'ana', at: 5 })
      await keys(OLD).load()
      await expect(new DataKeys(other, OLD, randomBytes).load()).rejects.toMatchObject({ code: 'STATE_UNREADABLE' })
    })

    test('Z4 a rotation interrupted before or after any of its calls is completed by the next, with one new key', async () => {
      for (let cut = 1; ; cut++) {
        const { store, keys } = await openFilled(open)
        let calls = 0
        const mortal =
          (method: 'reseal' | 'putDataKey' | 'removeDataKey') =>
          async (...args: never[]): Promise<never> => {
            const dies = ++calls === Math.ceil(cut / 2)
            if (dies && cut % 2 === 1) throw new Error('cut off')
            const answer = await (store[method] as (...given: never[]) => Promise<never>)(...args)
            if (dies) throw new Error('cut off')
            return answer
          }
        const dying: Store = {
          ...store,
          reseal: mortal('reseal'),
          putDataKey: mortal('putDataKey'),
          removeDataKey: mortal('removeDataKey'),
        }
        const ended = await new DataKeys(dying, BOTH, randomBytes).rotate('ana', 5).then(
          () => true,
          () => false,
        )
        if (ended) return
        await keys(BOTH).rotate('ana', 6)
        const newest = (await store.dataKeys()).at(-1)!
        expect(await store.sealedTexts({ except: newest.id, limit: 10 })).toEqual([])
        expect(
          await sealStore(store, BOTH, randomBytes).readCheckpoint({ worker: 'crm', sync: 'delta' }),
        ).toMatchObject({ committed: '"committed"', inflight: { state: '"page"' } })
      }
    })

    test('an unused data key is deleted and audited, and the order of the later ones stays', async () => {
      const { store, keys } = await openEmpty(open)
      const sealed = sealStore(store, OLD, randomBytes)
      await sealed.cursorSecrets(OFFER)
      for (let round = 0; round < 3; round++) {
        const [before] = await store.dataKeys()
        expect(await keys(OLD).rotate('ana', round)).toMatchObject({ resealed: 1, removed: [before!.id], kept: [] })
        expect(await store.dataKeys()).toHaveLength(1)
        expect(await store.removeDataKey((await store.dataKeys())[0]!.id, { actor: 'ana', at: 1 })).toBe(false)
      }
      expect(await sealStore(store, OLD, randomBytes).cursorSecrets({ ...OFFER, secret: 'other' })).toMatchObject([
        { secret: 'cursor-secret' },
      ])
      expect(
        (await store.auditChain({ after: 0, limit: 100 })).entries.filter(({ action }) => action === 'remove-key'),
      ).toHaveLength(3)
      expect(await verifyAuditChain(store)).toMatchObject({ intact: true })
    })

    test('a key ring that opens no key of the store creates none for a new tenant', async () => {
      const { store } = await openFilled(open)
      const foreign = new KeyRing([generateMasterKey(randomBytes)])
      const newcomer = sealStore(store.forTenant('newcomer'), foreign, randomBytes)
      await expect(newcomer.cursorSecrets(OFFER)).rejects.toMatchObject({ code: 'KEYS_MISSING' })
      expect(await store.forTenant('newcomer').dataKeys()).toEqual([])
      expect(await store.wrappingKeys()).toEqual([leaked.id])
      await sealStore(store.forTenant('newcomer'), BOTH, randomBytes).cursorSecrets(OFFER)
      expect(await store.wrappingKeys()).toEqual([leaked.id, fresh.id].toSorted())
    })
  })
}

interface Filled {
  readonly store: Store
  keys(ring: KeyRing): DataKeys
}

async function openEmpty(open: () => Promise<OpenedStore>): Promise<Filled> {
  const { store, close } = await open()
  onTestFinished(close)
  return { store, keys: (ring) => new DataKeys(store, ring, randomBytes) }
}

/** One of every kind of sealed text, under the old key ring. */
async function openFilled(open: () => Promise<OpenedStore>): Promise<Filled> {
  const filled = await openEmpty(open)
  const sealed = sealStore(filled.store, OLD, randomBytes)
  const driver = await SyncDriver.acquire(sealed, { sync: 'delta' })
  await driver.cycle([upsert('a', { n: 1 })], { state: '"committed"' })
  await driver.begin()
  const move = {
    kind: 'continue',
    cycle: driver.inflight!.cycle,
    page: 1,
    state: '"page"',
    tidemark: 'mark',
    scope: 'scope',
    guardState: 'guard',
  } as const
  await driver.send(await driver.draft(move, [upsert('b', { n: 1 })]))
  await driver.release()
  await sealed.putWebhook(
    {
      id: 'wh',
      url: 'https://example.com',
      databases: null,
      actions: null,
      allow: [],
      secrets: 'webhook-secret',
      createdAt: 1,
    },
    { sequence: 0, floor: 0 },
  )
  await sealed.cursorSecrets(OFFER)
  return filled
}
