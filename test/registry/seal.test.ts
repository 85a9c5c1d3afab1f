import { randomBytes } from 'node:crypto'
import { readFileSync, readdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Store } from '../../src/contract/index.ts'
import { DataKeys } from '../../src/registry/data-keys.ts'
import { KeyRing, encodeMasterKey, generateMasterKey, parseKeyRing } from '../../src/registry/key-ring.ts'
import { seal, unseal } from '../../src/registry/seal.ts'
import { sealStore } from '../../src/registry/sealed-store.ts'
import { verifyAuditChain } from '../../src/registry/verify-audit-chain.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'

describe('a seal', () => {
  const key = randomBytes(32)
  const sealed = seal(key, 'the state', 'here', randomBytes)

  test('R43 Z1 opens to the same text, and never has the same ciphertext twice', () => {
    expect(unseal(key, sealed, 'here')!.toString()).toBe('the state')
    expect(seal(key, 'the state', 'here', randomBytes)).not.toBe(sealed)
  })

  test('Z1 every bit counts', () => {
    const bytes = Buffer.from(sealed, 'base64url')
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const flipped = Buffer.from(bytes)
      flipped[bit >> 3]! ^= 1 << (bit & 7)
      expect(unseal(key, flipped.toString('base64url'), 'here')).toBeNull()
    }
  })

  test.each([4, 8, 12, 15])('Z1 a tag truncated to %i bytes is refused', (length) => {
    const bytes = Buffer.from(sealed, 'base64url')
    expect(unseal(key, bytes.subarray(0, bytes.length - 16 + length).toString('base64url'), 'here')).toBeNull()
  })

  test('Z1 Z2 another key, another context, appended noise and an empty text are refused', () => {
    expect(unseal(randomBytes(32), sealed, 'here')).toBeNull()
    expect(unseal(key, sealed, 'there')).toBeNull()
    expect(unseal(key, `${sealed}=`, 'here')).toBeNull()
    expect(unseal(key, '', 'here')).toBeNull()
  })
})

describe('a key ring', () => {
  test('is parsed from keys in base64, the first of which is current; comments are ignored', () => {
    const [one, two] = [generateMasterKey(randomBytes), generateMasterKey(randomBytes)]
    const ring = parseKeyRing(`# ours\n${encodeMasterKey(one)}, ${encodeMasterKey(two)}\n`, 'a file')
    expect(ring.current.id).toBe(one.id)
    expect(ring.keys.map(({ id }) => id)).toEqual([one.id, two.id])
  })

  test.each(['', '# nothing', 'short', `${'A'.repeat(43)}!`])('rejects %j without repeating it', (text) => {
    const error = (() => {
      try {
        return parseKeyRing(text, 'TIDEMARK_KEY')
      } catch (thrown) {
        return thrown as Error
      }
    })() as Error
    expect(error).toMatchObject({ code: 'KEYS_MISSING' })
    if (text.length > 1) expect(error.message).not.toContain(text)
  })
})

describe('a sealed store', () => {
  const [first, second] = [generateMasterKey(randomBytes), generateMasterKey(randomBytes)]
  const CANARY = 'canary-7f3a'
  let folder: string
  let raw: Store
  let store: Store

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidemark-seal-'))
    raw = await openSqliteStore({ file: join(folder, 'store.db'), thread: false })
    store = sealStore(raw, new KeyRing([first]), randomBytes)
  })
  afterEach(async () => {
    await raw.close()
    await rm(folder, { recursive: true })
  })

  async function landed(sync = 'delta'): Promise<SyncDriver> {
    const driver = await SyncDriver.acquire(store, { sync, holder: `runner-${sync}` })
    await driver.set(`{"secret":"${CANARY}-${sync}"}`)
    return driver
  }

  function sql(statement: string, ...parameters: string[]): void {
    const db = new DatabaseSync(join(folder, 'store.db'))
    db.prepare(statement).run(...parameters)
    db.close()
  }

  const filesHold = (text: string): string[] =>
    readdirSync(folder).filter((file) => readFileSync(join(folder, file)).includes(text))

  test('R43 R45 Z6 leaves no part of a state, a cursor or a scope in any file: not in the registry, the audit log, nor the write-ahead log', async () => {
    const driver = await landed()
    await driver.begin()
    await driver.send(
      await driver.draft(
        {
          kind: 'continue',
          cycle: driver.inflight!.cycle,
          page: 1,
          state: `"${CANARY}"`,
          tidemark: `${CANARY}-mark`,
          scope: `${CANARY}-scope`,
          guardState: `${CANARY}-guard`,
        },
        [upsert('a', { n: 1 })],
      ),
    )
    expect(filesHold(CANARY)).toEqual([])
    expect(await store.readCheckpoint(driver.ref)).toMatchObject({
      committed: `{"secret":"${CANARY}-delta"}`,
      inflight: {
        state: `"${CANARY}"`,
        tidemark: `${CANARY}-mark`,
        scope: `${CANARY}-scope`,
        guardState: `${CANARY}-guard`,
      },
    })
    expect((await store.audit(driver.ref))[0]!.state).toContain(CANARY)
    // Control: without the seal the same search finds the text.
    const bare = await SyncDriver.acquire(raw, { sync: 'bare' })
    await bare.set(`"${CANARY}"`)
    expect(filesHold(CANARY)).not.toEqual([])
  })

  test('R43 R45 a tidemark that is a time is a cursor too: it is in no file in plain text, and is shown as before', async () => {
    const time = '2031-07-09T05:04:03.210987Z'
    const driver = await landed()
    await driver.begin()
    await driver.send(
      await driver.draft(
        {
          kind: 'continue',
          cycle: driver.inflight!.cycle,
          page: 1,
          state: '1',
          tidemark: time,
          scope: null,
          guardState: null,
        },
        [upsert('a', { n: 1 })],
      ),
    )
    expect(filesHold('2031-07-09')).toEqual([])
    expect((await store.readCheckpoint(driver.ref)).inflight).toMatchObject({ tidemark: time })
    await driver.send(
      await driver.draft(
        {
          kind: 'complete',
          cycle: driver.inflight!.cycle,
          page: 2,
          state: '2',
          tidemark: time,
          scope: null,
          sweep: null,
        },
        [],
      ),
    )
    expect(filesHold('2031-07-09')).toEqual([])
    expect(await store.readCheckpoint(driver.ref)).toMatchObject({ tidemark: time })
    expect((await store.listSyncStatus({ at: 1, recent: 0 })).syncs).toMatchObject([{ checkpoint: { tidemark: time } }])
    // A time that an earlier release stored in plain text can still be read.
    sql('update tidemark_registry set tidemark = ?', time)
    expect(await store.readCheckpoint(driver.ref)).toMatchObject({ tidemark: time })
  })

  test('a page is passed on at once if the key is known: otherwise the page read ahead would be prepared first, without concurrency', async () => {
    let arrived = 0
    raw.commit = (
      (commit: typeof raw.commit) =>
      (...args: Parameters<typeof raw.commit>) => (arrived++, commit.apply(raw, args))
    )(raw.commit)
    store = sealStore(raw, new KeyRing([first]), randomBytes)
    const driver = await landed()
    await driver.begin()
    const draft = await driver.draft(
      {
        kind: 'continue',
        cycle: driver.inflight!.cycle,
        page: 1,
        state: '1',
        tidemark: null,
        scope: 'all',
        guardState: null,
      },
      [upsert('a', { n: 1 })],
    )
    arrived = 0
    const answer = store.commit(draft)
    expect(arrived).toBe(1)
    expect(await answer).toMatchObject({ kind: 'landed' })
  })

  test('Z6 the secrets of webhooks are in no file in plain text, and those of one webhook do not work for another', async () => {
    const settings = {
      id: 'a',
      url: 'https://example.com',
      databases: null,
      actions: null,
      allow: [],
      secrets: CANARY,
      createdAt: 1_000,
    }
    await store.putWebhook(settings, { sequence: 0, floor: 0 })
    expect((await store.webhooks())[0]!.secrets).toBe(CANARY)
    expect(filesHold(CANARY)).toEqual([])
    await raw.putWebhook(
      { ...settings, id: 'b', secrets: (await raw.webhooks())[0]!.secrets },
      { sequence: 0, floor: 0 },
    )
    await expect(store.claimWebhook('b', { holder: 'h', ttlMs: 1, at: 1 })).rejects.toMatchObject({
      code: 'STATE_UNREADABLE',
    })
  })

  test('Z6 the secrets of cursors are in no file in plain text', async () => {
    const offer = { secret: CANARY, createdAt: 1_000, rotateAfterMs: 10, retainMs: 100 }
    expect(await store.cursorSecrets(offer)).toEqual([{ secret: CANARY, createdAt: 1_000 }])
    expect(filesHold(CANARY)).toEqual([])
    expect(await store.cursorSecrets({ ...offer, secret: 'another', createdAt: 1_005 })).toEqual([
      { secret: CANARY, createdAt: 1_000 },
    ])
  })

  test('Z2 a state moved to another sync is refused', async () => {
    const [one, two] = [await landed('one'), await landed('two')]
    sql(
      "update tidemark_registry set committed = (select committed from tidemark_registry where stream_id = 'one') where stream_id = 'two'",
    )
    await expect(store.readCheckpoint(two.ref)).rejects.toMatchObject({ code: 'STATE_UNREADABLE' })
    const begin = { at: 0, mode: 'incremental', trigger: 'x', fresh: true, databases: [] } as const
    await expect(store.beginCycle(two.lease, begin)).rejects.toMatchObject({ code: 'STATE_UNREADABLE' })
    await two.release()
    await expect(store.acquire(two.ref, { holder: 'x', ttlMs: 1_000, at: 0 })).rejects.toMatchObject({
      code: 'STATE_UNREADABLE',
    })
    await expect(store.readCheckpoint(one.ref)).resolves.toMatchObject({ version: 1 })
  })

  test('Z2 an older state restored under the newest version is refused, whatever version its text names', async () => {
    const driver = await landed()
    const old = (await raw.readCheckpoint(driver.ref)).committed!
    await driver.set('"newer"')
    const newer = (await raw.readCheckpoint(driver.ref)).committed!
    for (const forged of [
      old,
      old.replace('.c1.', '.c2.'),
      newer.replace('.c2.', '.c1.'),
      '{"plain":true}',
      '',
      newer.replace('sealed.1', 'sealed.9'),
    ]) {
      sql('update tidemark_registry set committed = ?', forged)
      await expect(store.readCheckpoint(driver.ref)).rejects.toMatchObject({ code: 'STATE_UNREADABLE' })
    }
    sql('update tidemark_registry set committed = ?', newer)
    expect((await store.readCheckpoint(driver.ref)).committed).toBe('"newer"')
  })

  test('Z2 a cycle that has just begun opens the committed state, and refuses an earlier one', async () => {
    const driver = await landed()
    const old = (await raw.readCheckpoint(driver.ref)).committed!
    await driver.set('"newer"')
    expect((await driver.begin()).inflight.state).toBe('"newer"')
    sql('update tidemark_registry set inflight_state = ?', old)
    await expect(
      store.beginCycle(driver.lease, { at: 0, mode: 'incremental', trigger: 'x', fresh: false, databases: [] }),
    ).rejects.toMatchObject({ code: 'STATE_UNREADABLE' })
  })

  test('Z5 without the key nothing can be started or changed, the lease is free again, and with the key all is as before', async () => {
    const driver = await landed()
    const stranger = sealStore(raw, new KeyRing([second]), randomBytes)
    await driver.release()
    const before = await raw.readCheckpoint(driver.ref)
    await expect(stranger.acquire(driver.ref, { holder: 'x', ttlMs: 1_000, at: 0 })).rejects.toMatchObject({
      code: 'STATE_UNREADABLE',
      message: expect.stringContaining(first.id),
    })
    expect({ ...(await raw.readCheckpoint(driver.ref)) }).toEqual(before)
    await expect(stranger.readCheckpoint(driver.ref)).rejects.toMatchObject({
      code: 'STATE_UNREADABLE',
      message: expect.stringContaining(second.id),
    })
    expect((await store.readCheckpoint(driver.ref)).committed).toContain(CANARY)
  })

  test('Z3 neither the wrapping key nor the data key is in any file', async () => {
    await landed()
    const [wrapped] = await raw.dataKeys()
    const dataKey = unseal(
      first.bytes,
      wrapped!.wrapped,
      JSON.stringify(['tidemark data key', 1, raw.tenant, wrapped!.id]),
    )!
    expect(filesHold(wrapped!.wrapped)).not.toEqual([])
    for (const bytes of [first.bytes, dataKey]) {
      for (const form of ['base64', 'hex', 'base64url', 'latin1'] as const)
        expect(filesHold(bytes.toString(form))).toEqual([])
      expect(readdirSync(folder).filter((file) => readFileSync(join(folder, file)).includes(bytes))).toEqual([])
    }
  })

  test('Z4 keys are rotated while others work: rewrapped once, readable with the new key alone, and audited', async () => {
    const driver = await landed()
    const both = new KeyRing([second, first])
    const keys = new DataKeys(raw, both, randomBytes)
    expect(await keys.rewrap('ana', 5)).toBe(1)
    expect(await keys.rewrap('ana', 6)).toBe(0)
    // A process from before continues with the key in memory.
    await driver.set('"while rotating"')
    const renewed = sealStore(raw, new KeyRing([second]), randomBytes)
    expect((await renewed.readCheckpoint(driver.ref)).committed).toBe('"while rotating"')
    await expect(sealStore(raw, new KeyRing([first]), randomBytes).readCheckpoint(driver.ref)).rejects.toMatchObject({
      code: 'STATE_UNREADABLE',
    })
    expect((await raw.auditChain({ after: 0, limit: 10 })).entries.map(({ action }) => action)).toEqual([
      'new-key',
      'set',
      'rewrap-key',
      'set',
    ])
  })

  test('Z4 a new data key seals from then on; texts of the old key stay readable, also for a process that did not know the new one', async () => {
    const driver = await landed()
    const other = sealStore(raw, new KeyRing([first]), randomBytes)
    await other.readCheckpoint(driver.ref)
    await new DataKeys(raw, new KeyRing([first]), randomBytes).add('ana', 5)
    const fresh = sealStore(raw, new KeyRing([first]), randomBytes)
    const again = await SyncDriver.acquire(fresh, { sync: 'again' })
    await again.set('"x"')
    const [oldKey, newKey] = (await raw.dataKeys()).map(({ id }) => id)
    expect((await raw.readCheckpoint(again.ref)).committed).toContain(`.${newKey}.`)
    expect((await raw.readCheckpoint(driver.ref)).committed).toContain(`.${oldKey}.`)
    expect((await other.readCheckpoint(again.ref)).committed).toBe('"x"')
  })

  test('Z3 a data key moved to another tenant or changed is refused', async () => {
    const driver = await landed()
    const [key] = await raw.dataKeys()
    const other = raw.forTenant('other')
    await other.putDataKey(key!, { actor: 'x', at: 0 })
    const sealedOther = sealStore(other, new KeyRing([first]), randomBytes)
    await expect(SyncDriver.acquire(sealedOther)).rejects.toMatchObject({
      code: 'STATE_UNREADABLE',
      message: expect.stringContaining('tampered'),
    })
    expect((await store.readCheckpoint(driver.ref)).version).toBe(1)
  })

  const offer = { secret: CANARY, createdAt: 1_000, rotateAfterMs: 10, retainMs: 100 }
  test.each<[string, () => Promise<unknown>, (stranger: Store) => Promise<unknown>]>([
    [
      'a state',
      () => landed(),
      async (stranger) => (await stranger.readCheckpoint({ worker: 'crm', sync: 'delta' })).committed,
    ],
    [
      'a secret of cursors',
      () => store.cursorSecrets(offer),
      async (stranger) => (await stranger.cursorSecrets(offer))[0]!.secret,
    ],
    [
      'a secret of webhooks',
      () =>
        store.putWebhook(
          {
            id: 'a',
            url: 'https://example.com',
            databases: null,
            actions: null,
            allow: [],
            secrets: CANARY,
            createdAt: 1_000,
          },
          { sequence: 0, floor: 0 },
        ),
      async (stranger) => (await stranger.webhooks())[0]!.secrets,
    ],
  ])(
    'Z14 after a tenant was erased by another process, %s is not sealed with the erased keys',
    async (_, write, read) => {
      await (await landed()).release()
      expect(await raw.eraseTenant({ actor: 'ana', at: 5 })).toMatchObject({ kind: 'erased' })
      // The process that knew the old key continues: its texts open in a process that never knew it.
      await write()
      expect(await read(sealStore(raw, new KeyRing([first]), randomBytes))).toContain(CANARY)
    },
  )

  test('Z14 after erasure nothing of the tenant is in any file: no record, key, state, name of a sync, address or actor', async () => {
    const acme = store.forTenant('acme')
    const driver = await SyncDriver.acquire(acme, { worker: `${CANARY}-worker`, sync: `${CANARY}-sync` })
    // More than a page, and repeatedly: overwritten and freed pages count as well.
    for (let n = 0; n < 20; n++) {
      await driver.begin({ databases: [`${CANARY}-things`] })
      await driver.complete(
        [
          upsert(
            `${CANARY}-key`,
            { text: `${CANARY}-${'x'.repeat(20_000)}`, n },
            { cursor: `${CANARY}-cursor`, database: `${CANARY}-things` },
          ),
        ],
        {
          quarantined: [
            {
              database: `${CANARY}-things`,
              key: `${CANARY}-bad`,
              code: 'RECORD_INVALID',
              message: CANARY,
              text: CANARY,
            },
          ],
        },
      )
    }
    await driver.set(`"${CANARY}"`, `${CANARY}-actor`, `${CANARY}-reason`)
    await acme.putWebhook(
      {
        id: CANARY,
        url: `https://example.com/${CANARY}`,
        databases: null,
        actions: null,
        allow: [],
        secrets: CANARY,
        createdAt: 1,
      },
      { sequence: 0, floor: 0 },
    )
    await acme.addApiKey({
      id: `${CANARY}-key`,
      name: CANARY,
      hash: CANARY,
      scopes: [CANARY],
      rateLimit: 1,
      createdAt: 1,
      endsAt: null,
    })
    const survivor = await landed()
    await driver.release()
    const keys = (await raw.forTenant('acme').dataKeys()).map(({ wrapped }) => wrapped)
    expect([...filesHold(CANARY), ...filesHold(keys[0]!)]).not.toEqual([])
    expect(await acme.eraseTenant({ actor: 'ana', at: 5 })).toMatchObject({ kind: 'erased', syncs: 1, remains: null })
    expect(filesHold(CANARY)).toEqual([])
    expect(filesHold(keys[0]!)).toEqual([])
    expect((await store.readCheckpoint(survivor.ref)).committed).toContain(CANARY)
  })

  test('Z14 a file that another process reads is erased as well, and the remaining steps are reported', async () => {
    const acme = store.forTenant('acme')
    const driver = await SyncDriver.acquire(acme)
    await driver.cycle([upsert('a', { text: CANARY })])
    await driver.release()
    const reader = new DatabaseSync(join(folder, 'store.db'))
    const quick = await openSqliteStore({ file: join(folder, 'store.db'), thread: false, busyTimeoutMs: 50 })
    reader.exec('begin; select count(*) from tidemark_commits')
    expect(await quick.forTenant('acme').eraseTenant({ actor: 'ana', at: 5 })).toMatchObject({
      kind: 'erased',
      remains: expect.stringContaining('Stop them'),
    })
    expect(await acme.databases()).toEqual([])
    reader.exec('commit')
    reader.close()
    expect(await quick.forTenant('acme').eraseTenant({ actor: 'ana', at: 5 })).toMatchObject({
      kind: 'erased',
      entries: 0,
      remains: null,
    })
    expect(filesHold(CANARY)).toEqual([])
    await quick.close()
  })

  test.each([
    ['changed', "update tidemark_audit set actor = 'eve' where audit_id = 2", 2],
    ['deleted in the middle', 'delete from tidemark_audit where audit_id = 2', 3],
    ['deleted at the end', 'delete from tidemark_audit where audit_id = (select max(audit_id) from tidemark_audit)', 3],
    ['swapped', 'update tidemark_audit set audit_id = case audit_id when 2 then 99 else audit_id end', 3],
  ])('R51 Z22 an audit entry that was %s is detected', async (_, statement, at) => {
    const driver = await landed()
    await driver.set('"2"')
    await driver.set('"3"')
    expect(await verifyAuditChain(store)).toMatchObject({ intact: true, entries: 4 })
    expect(() => sql(statement)).toThrow('only ever added to')
    sql('drop trigger tidemark_audit_stays')
    sql('drop trigger tidemark_audit_remains')
    sql(statement)
    expect(await verifyAuditChain(store)).toMatchObject({ intact: false, brokenAt: { id: at } })
  })
})
