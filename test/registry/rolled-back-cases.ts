import { randomBytes } from 'node:crypto'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Store } from '../../src/contract/index.ts'
import { KeyRing, generateMasterKey } from '../../src/registry/key-ring.ts'
import { sealStore } from '../../src/registry/sealed-store.ts'
import { verifyAuditChain } from '../../src/registry/verify-audit-chain.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { applyStateTransition } from '../../src/runner/state-transition.ts'
import { SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'

export interface OpenedStore {
  readonly store: Store
  /** Runs SQL as a user who may write to the tables; `tables.` is replaced by the store's own prefix. */
  sql(text: string): Promise<Array<Record<string, unknown>>>
  close(): Promise<void>
}

const REF = { worker: 'crm', sync: 'delta' }
const STATE_COLUMNS = ['version', 'committed', 'committed_by', 'tidemark', 'scope']
const INFLIGHT_COLUMNS = [
  'cycle',
  'mode',
  'page',
  'state',
  'started_at',
  'scope',
  'tidemark',
  'guard',
  'start_sequence',
].map((name) => `inflight_${name}`)
const ROLLED_BACK = { code: 'STATE_ROLLED_BACK' }

interface RollbackFixture extends OpenedStore {
  /** Current values of some columns of the sync's row. */
  copy(columns: readonly string[]): Promise<Record<string, unknown>>
  paste(copied: Record<string, unknown>): Promise<void>
  /** Sealed, with one key ring for all. */
  readonly sealed: Store
}

/** Each leaves the registry in a state that never existed, with every seal valid and the lease held. */
const TAMPERINGS: ReadonlyArray<[string, (scene: RollbackFixture) => Promise<SyncDriver>]> = [
  [
    'the state of an older version is put back with its version and its seal',
    async (scene) => {
      const { driver, old } = await twoVersions(scene)
      await scene.paste(old)
      return driver
    },
  ],
  [
    'the committed state is nulled',
    async (scene) => {
      const { driver } = await twoVersions(scene)
      await scene.sql('update tables.registry set committed = null')
      return driver
    },
  ],
  [
    'version and state are set back to those of a sync that never ran',
    async (scene) => {
      const { driver } = await twoVersions(scene)
      await scene.sql('update tables.registry set version = 0, committed = null, committed_by = null')
      return driver
    },
  ],
  [
    'the row is deleted',
    async (scene) => {
      const { driver } = await twoVersions(scene)
      await scene.sql('delete from tables.registry')
      return driver
    },
  ],
  [
    'an unfinished cycle is put back by a page',
    async (scene) => {
      const { driver } = await twoVersions(scene)
      await driver.begin()
      await driver.page([upsert('c', { n: 1 })], { state: '"one"' })
      const old = await scene.copy(INFLIGHT_COLUMNS)
      await driver.page([upsert('d', { n: 1 })], { state: '"two"' })
      await scene.paste(old)
      return driver
    },
  ],
  [
    'an unfinished cycle is deleted',
    async (scene) => {
      const { driver } = await twoVersions(scene)
      const old = await scene.copy(INFLIGHT_COLUMNS)
      await driver.begin()
      await driver.page([upsert('c', { n: 1 })], { state: '"one"' })
      await scene.paste(old)
      return driver
    },
  ],
  [
    'the state of an unfinished cycle is nulled',
    async (scene) => {
      const { driver } = await twoVersions(scene)
      await driver.begin()
      await driver.page([upsert('c', { n: 1 })], { state: '"one"' })
      await scene.sql('update tables.registry set inflight_state = null')
      return driver
    },
  ],
  [
    'a cycle that is over is brought back',
    async (scene) => {
      const { driver } = await twoVersions(scene)
      await driver.begin()
      await driver.page([upsert('c', { n: 1 })], { state: '"one"' })
      const old = await scene.copy(INFLIGHT_COLUMNS)
      await driver.complete([])
      await scene.paste(old)
      return driver
    },
  ],
]

export function describeRolledBack(name: string, open: () => Promise<OpenedStore>): void {
  describe(`states rolled back behind the audit log on ${name}`, () => {
    for (const [what, tamper] of TAMPERINGS) {
      test(`Z2 R43 ${what}: every read that would use it and the verification report it, and a reset repairs it`, async () => {
        const scene = await openRollbackFixture(open)
        const tampered = await tamper(scene)
        const { sealed } = scene
        await expect(sealed.readCheckpoint(REF)).rejects.toMatchObject(ROLLED_BACK)
        const begin = {
          at: systemClock.now(),
          mode: 'incremental',
          trigger: 'test',
          fresh: false,
          databases: ['things'],
        } as const
        // The lease is deleted with its row.
        if (what === 'the row is deleted') expect(await sealed.beginCycle(tampered.lease, begin)).toBeNull()
        else await expect(sealed.beginCycle(tampered.lease, begin)).rejects.toMatchObject(ROLLED_BACK)
        await tampered.release()
        const request = { holder: 'another', ttlMs: 60_000, at: systemClock.now() }
        await expect(sealed.acquire(REF, request)).rejects.toMatchObject(ROLLED_BACK)
        expect(await verifyAuditChain(sealed)).toMatchObject({
          intact: false,
          brokenAt: null,
          states: [{ ...REF, why: expect.stringContaining('delta') }],
        })
        // An operator's reset is audited, continues after the newest version, and leaves everything consistent.
        const { version } = await sealed.readCheckpoint(REF, { forRepair: true })
        const mover = { clock: systemClock, actor: 'ana', holder: 'ana', isDead: () => false }
        const moved = await applyStateTransition(
          sealed,
          REF,
          { state: null, reason: 'put back in SQL', owner: 'crm/delta', version },
          mover,
        )
        expect(moved.version).toBe(version + 1)
        expect(await sealed.readCheckpoint(REF)).toMatchObject({
          version: version + 1,
          committed: null,
          inflight: null,
        })
        expect(await verifyAuditChain(sealed)).toMatchObject({ intact: true, states: [] })
        const driver = await SyncDriver.acquire(sealed, REF)
        await driver.cycle([upsert('z', { n: 1 })], { state: '"after"' })
        expect(await sealed.readCheckpoint(REF)).toMatchObject({ version: version + 2, committed: '"after"' })
      })
    }

    test('Z2 a row rolled back while a lease is held is refused when the cycle begins', async () => {
      const scene = await openRollbackFixture(open)
      const { driver, old } = await twoVersions(scene)
      await scene.paste(old)
      await expect(driver.begin()).rejects.toMatchObject(ROLLED_BACK)
    })

    test('resets, discarded cycles, resumed cycles and erasures contradict nothing', async () => {
      const scene = await openRollbackFixture(open)
      const { sealed } = scene
      const { driver } = await twoVersions(scene)
      await driver.begin()
      await driver.page([upsert('c', { n: 1 })], { state: '"one"' })
      await driver.release()
      const again = await SyncDriver.acquire(sealed, REF)
      await again.begin()
      await again.page([upsert('d', { n: 1 })], { state: '"two"' })
      await again.begin({ fresh: true })
      await again.page([upsert('e', { n: 1 })], { state: '"three"' })
      await again.set(null)
      expect(await sealed.readCheckpoint(REF)).toMatchObject({ committed: null, inflight: null })
      await again.release()
      expect(await verifyAuditChain(sealed)).toMatchObject({ intact: true, states: [] })
      await sealed.eraseTenant({ actor: 'ana', at: systemClock.now() + 600_000 })
      expect(await sealed.readCheckpoint(REF)).toMatchObject({ version: 0, committed: null })
      await (await SyncDriver.acquire(sealed, REF)).cycle([upsert('a', { n: 1 })])
      expect(await verifyAuditChain(sealed)).toMatchObject({ intact: true, states: [] })
    })

    test('Z22 no SQL statement removes or replaces an entry of the audit log', async () => {
      const scene = await openRollbackFixture(open)
      await twoVersions(scene)
      const statements = [
        "update tables.audit set actor = 'other'",
        'delete from tables.audit',
        "delete from tables.audit where action = 'complete'",
        ...(name === 'postgres'
          ? ['truncate tables.audit', 'truncate tables.audit, tables.registry', 'truncate tables.audit cascade']
          : ['insert or replace into tables.audit select * from tables.audit']),
      ]
      for (const statement of statements)
        await expect(scene.sql(statement), statement).rejects.toThrow('only ever added to')
      expect(await verifyAuditChain(scene.sealed)).toMatchObject({ intact: true })
    })
  })
}

async function openRollbackFixture(open: () => Promise<OpenedStore>): Promise<RollbackFixture> {
  const opened = await open()
  onTestFinished(() => opened.close())
  const sealed = sealStore(opened.store, new KeyRing([generateMasterKey(randomBytes)]), randomBytes)
  return {
    ...opened,
    sealed,
    copy: async (columns) => (await opened.sql(`select ${columns.join(', ')} from tables.registry`))[0]!,
    async paste(copied) {
      const sets = Object.entries(copied).map(
        ([column, value]) => `${column} = ${value === null ? 'null' : `'${String(value)}'`}`,
      )
      await opened.sql(`update tables.registry set ${sets.join(', ')}`)
    },
  }
}

async function twoVersions(scene: RollbackFixture): Promise<{ driver: SyncDriver; old: Record<string, unknown> }> {
  const driver = await SyncDriver.acquire(scene.sealed, REF)
  await driver.cycle([upsert('a', { n: 1 })], { state: '"first"' })
  const old = await scene.copy(STATE_COLUMNS)
  await driver.cycle([upsert('b', { n: 1 })], { state: '"second"' })
  return { driver, old }
}
