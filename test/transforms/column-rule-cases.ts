import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Change, JsonObject, Page, Store } from '../../src/contract/index.ts'
import { runCycle } from '../../src/engine/cycle.ts'
import type { CycleResult } from '../../src/engine/cycle-options.ts'
import { rewriteColumns, type RewriteOptions, type RewriteResult } from '../../src/engine/rewrite-columns.ts'
import { replayQuarantinedRecords } from '../../src/engine/replay-quarantine.ts'
import type { SyncPlan } from '../../src/engine/sync-plan.ts'
import { ColumnCipher, openColumnCipher } from '../../src/registry/column-cipher.ts'
import { DataKeys } from '../../src/registry/data-keys.ts'
import { generateMasterKey, KeyRing } from '../../src/registry/key-ring.ts'
import { sealStore } from '../../src/registry/sealed-store.ts'
import { findColumnRuleChanges } from '../../src/runner/column-rule-changes.ts'
import type { ColumnRules } from '../../src/transforms/column-rules.ts'
import { systemClock as clock } from '../../src/platform/clock.ts'
import { parseJson } from '../../src/values/json.ts'
import { serializedUpsert } from '../../src/values/serialized-upsert.ts'
import { Worker } from '../../src/worker/worker.ts'
import type { DatabaseOptions } from '../../src/worker/worker.ts'

export interface OpenedStore {
  readonly store: Store
  /** Every value that is stored anywhere, as one text. */
  dump(): Promise<string>
  close(): Promise<void>
}

const KEYS = new KeyRing([generateMasterKey(randomBytes)])
const CANARY = 'canary-7f3a'

/** The rules of columns on a store, through the engine and the sealed store. */
export function describeColumnRules(name: string, open: () => Promise<OpenedStore>): void {
  describe(`column rules on ${name}`, () => {
    let opened: OpenedStore
    let store: Store
    let logged: string[]
    beforeEach(async () => {
      opened = await open()
      store = sealStore(opened.store, KEYS, randomBytes)
      logged = []
    })
    afterEach(() => opened.close())

    const ports = (): Parameters<typeof runCycle>[1]['ports'] => {
      const log = (message: string, fields?: object): void => void logged.push(`${message} ${JSON.stringify(fields)}`)
      return { clock, random: { next: () => 0.5 }, log: { debug: log, info: log, warn: log, error: log } }
    }

    async function run(plan: SyncPlan, options: { store?: Store; fresh?: boolean } = {}): Promise<CycleResult> {
      return runCycle(plan, {
        store,
        ports: ports(),
        fetch: () => Promise.reject(new Error('no network')),
        secrets: { get: (secret) => secret },
        holder: 'p1',
        trigger: 'test',
        ...options,
      })
    }

    function planOf(
      columns: ColumnRules | undefined,
      page: Change[] | Page | (() => Page),
      more: { mode?: 'replace' | 'incremental'; database?: DatabaseOptions; limits?: Partial<SyncPlan['limits']> } = {},
    ): SyncPlan {
      const worker = new Worker({ name: 'crm' })
      const people = worker.database('people', { ...more.database, ...(columns !== undefined && { columns }) })
      worker.sync('people', {
        database: people,
        schedule: 'manual',
        mode: more.mode ?? 'replace',
        limits: { retriesMax: 0, ...more.limits },
        execute: async () =>
          typeof page === 'function'
            ? page()
            : Array.isArray(page)
              ? { changes: page, hasMore: false, nextState: { n: clock.now() } }
              : page,
      })
      return worker.plan('people')
    }

    const upsert = (key: string, record: JsonObject): Change => ({ type: 'upsert', key, record })
    const rows = async (from = store): Promise<Record<string, JsonObject>> =>
      Object.fromEntries(
        (await from.rows({ database: 'people', limit: 100 })).map(({ key, text }) => [
          key,
          parseJson(text) as JsonObject,
        ]),
      )
    const rulesOf = async (): Promise<string | undefined> => (await store.columnRules('crm'))[0]?.fingerprint
    const columnsOf = async (): Promise<Record<string, string>> =>
      Object.fromEntries((await store.schema('people'))!.columns.map(({ member, type }) => [member, type]))

    test('every rule is applied to the stored row, and the columns have the types that follow from the rules', async () => {
      const plan = planOf(
        {
          select: ['email', 'phone', 'iban', 'amount', 'address.city', 'address.street', 'ssn', 'note'],
          drop: ['address.street'],
          cast: { amount: 'bigint' },
          hash: ['email'],
          mask: { phone: 4, ssn: 'hidden' },
          encrypt: ['iban'],
          rename: { 'address.city': 'city', amount: 'cents', note: 'remark' },
        },
        {
          changes: [
            upsert('1', {
              email: 'a@b.c',
              phone: '+49 170 1234',
              iban: 'DE12',
              amount: '0012',
              ssn: 7,
              note: null,
              other: 1,
              address: { city: 'Kiel', street: 'Weg 1' },
            }),
          ],
          hasMore: false,
          tables: [
            {
              columns: [
                { name: 'amount', type: 'text' },
                { name: 'phone', type: 'text' },
                { name: 'note', type: 'uuid' },
              ],
            },
          ],
        },
      )
      expect(await run(plan)).toMatchObject({ stopReason: 'complete' })
      const { 1: row } = await rows()
      expect(row).toEqual({
        email: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
        phone: '****1234',
        iban: expect.stringMatching(/^encrypted\.1\.c[0-9a-f]{8}\./) as string,
        ssn: 'hidden',
        remark: null,
        address: {},
        city: 'Kiel',
        cents: 12,
      })
      expect(await columnsOf()).toMatchObject({
        cents: 'bigint',
        email: 'text',
        iban: 'text',
        remark: 'uuid',
        city: 'text',
      })
      expect(Object.keys(await columnsOf())).not.toContain('amount')
      const cipher = await openColumnCipher(store, { actor: 'test', at: 0 })
      expect(cipher.decrypt(String(row!['iban']))).toEqual({ database: 'people', field: 'iban', text: '"DE12"' })
      expect(cipher.hash('a@b.c')).toBe(row!['email'])
    })

    test('no value that the rules hide is stored or logged: of records that land, change, are deleted or refused', async () => {
      const secret = (what: string): string => `${CANARY}-${what}`
      const rules: ColumnRules = {
        drop: ['dropped', 'deep.dropped'],
        hash: ['hashed', 'deep.list.hashed'],
        mask: { masked: 0, fixed: 'x' },
        encrypt: ['encrypted'],
        cast: { hashed: 'bigint' },
      }
      const record = (n: number): JsonObject => ({
        n,
        dropped: secret('dropped'),
        hashed: secret('hashed'),
        masked: secret('masked'),
        fixed: { inner: secret('fixed') },
        encrypted: [secret('encrypted')],
        deep: { dropped: secret('deep'), list: [{ hashed: secret('list') }, { hashed: null }] },
      })
      const database: DatabaseOptions = {
        schema: { type: 'object', properties: { n: { type: 'integer' }, hashed: { type: 'string' } } },
      }
      const changes: Change[] = [
        upsert('good', record(1)),
        upsert('gone', record(1)),
        // Refused by the schema, by its size, by its time, and by its form.
        upsert('schema', { ...record(1), n: 'no' }),
        upsert('large', { ...record(1), text: 'x'.repeat(2_000) }),
        { type: 'upsert', key: 'time', record: record(1), upstreamUpdatedAt: secret('hashed') },
        upsert('blocked', { ...record(1), deep: secret('blocked') }),
        upsert('bad', { ...record(1), wrong: new Map([['a', 1]]) as never }),
        { type: 'upsert', key: 'text', record: secret('text') as never },
        { type: 'invalid', key: 'invalid', reason: 'cannot be read', raw: { line: secret('raw') } },
        { type: 'upsert', key: 'cursor', record: record(1), cursor: secret('hashed') },
        serializedUpsert('serialized', { text: JSON.stringify(record(1)), shape: { columns: [] } }),
        serializedUpsert('broken', { text: `{"hashed":"${secret('broken')}`, shape: { columns: [] } }),
      ]
      const limits = { recordBytesMax: 1_500 }
      expect(await run(planOf(rules, changes, { database, limits }))).toMatchObject({ stopReason: 'complete' })
      expect(Object.keys(await rows())).toEqual(['cursor', 'gone', 'good', 'serialized'])
      const { serialized, good } = await rows()
      expect({ ...serialized, encrypted: 0 }).toEqual({ ...good, encrypted: 0 })
      const refused = await store.quarantineEntries({ limit: 100 })
      expect(refused.map(({ key }) => String(key)).toSorted()).toEqual([
        'bad',
        'blocked',
        'broken',
        'invalid',
        'large',
        'schema',
        'text',
        'time',
      ])
      expect(refused.find(({ key }) => key === 'blocked')).toMatchObject({
        code: 'RECORD_INVALID',
        message: 'columns: the field deep is not an object, so a rule for what it contains cannot be applied',
      })
      expect(await opened.dump()).not.toContain(CANARY)
      await run(planOf(rules, [upsert('good', { ...record(2), more: secret('hashed').length })], { database, limits }))
      const plan = planOf(
        {
          ...rules,
          map: {
            version: 1,
            apply: (given) => {
              throw new Error(String(given['hashed']))
            },
          },
        },
        changes,
        { limits },
      )
      await run(plan)
      expect((await store.quarantineEntries({ limit: 100 })).find(({ key }) => key === 'good')).toMatchObject({
        message: expect.stringMatching(
          /^columns: the function of `map` \(version 1\) failed at column-rule-cases\.ts:\d+$/,
        ) as string,
      })
      expect(await opened.dump()).toContain('good')
      expect(await opened.dump()).not.toContain(CANARY)
      expect(JSON.stringify(await store.changes({ after: 0, limit: 1_000 }))).not.toContain(CANARY)
      expect(logged.join('\n')).not.toContain(CANARY)
    })

    test('a field that makes up the key cannot be hidden, declared or found in the records', async () => {
      const hash = { hash: ['email'] }
      const page = (...emails: string[]): Change[] => emails.map((email) => upsert(email, { email, n: 1 }))
      const refusal = { stopReason: 'error', error: { code: 'COLUMNS_INVALID' } }
      expect(await run(planOf(hash, page(`${CANARY}@b.c`)))).toMatchObject(refusal)
      expect(await run(planOf({ drop: ['email'] }, [upsert(`shop:${CANARY}`, { email: CANARY })]))).toMatchObject(
        refusal,
      )
      expect(
        await run(planOf({ mask: { id: 1 } }, [upsert('17', { id: 17 }), upsert('18', { id: 18 })])),
      ).toMatchObject(refusal)
      expect(
        await run(planOf(hash, { changes: [], hasMore: false, tables: [{ columns: [], key: ['email'] }] })),
      ).toMatchObject(refusal)
      expect(() => planOf(hash, [], { database: { key: ['email'] } })).toThrow(/`_key` shows its value/)
      expect(await opened.dump()).not.toContain(CANARY)
      // Equal by chance.
      expect(
        await run(planOf({ hash: ['age'] }, [upsert('17', { age: 17 }), upsert('18', { age: 17 })])),
      ).toMatchObject({
        stopReason: 'complete',
      })
    })

    test('hashes and ciphertexts are stable, so that an unchanged record is unchanged; they differ between tenants', async () => {
      const rules: ColumnRules = { hash: ['email'], encrypt: ['iban'] }
      const page = [upsert('1', { email: 'a@b.c', iban: 'DE1' }), upsert('2', { email: 'a@b.c', iban: 'DE1' })]
      await run(planOf(rules, page))
      const { 1: first, 2: second } = await rows()
      expect([first!['email'] === second!['email'], first!['iban'] === second!['iban']]).toEqual([true, false])
      expect((await run(planOf(rules, page))).counts).toMatchObject({ created: 0, updated: 0, unchanged: 2 })
      // A new data key seals the column key again, and changes neither hashes nor ciphertexts.
      await new DataKeys(opened.store, KEYS, randomBytes).rotate('ana', clock.now())
      store = sealStore(opened.store, KEYS, randomBytes)
      expect((await run(planOf(rules, page))).counts).toMatchObject({ updated: 0, unchanged: 2 })
      const other = sealStore(opened.store.forTenant('acme'), KEYS, randomBytes)
      await run(planOf(rules, page), { store: other })
      const { 1: theirs } = await rows(other)
      expect(theirs!['email']).not.toBe(first!['email'])
      const cipher = await openColumnCipher(other, { actor: 'test', at: 0 })
      expect(cipher.decrypt(String(theirs!['iban']))).toMatchObject({ text: '"DE1"' })
      expect(cipher.decrypt(String(first!['iban']))).toBeNull()
      // The key in the store is sealed.
      const [key] = await opened.store.columnKeys()
      expect(key!.secret).toMatch(/^sealed\.1\./)
    })

    test('erasing the tenant makes its hashes and ciphertexts unreadable', async () => {
      const rules: ColumnRules = { hash: ['email'], encrypt: ['iban'] }
      await run(planOf(rules, [upsert('1', { email: 'a@b.c', iban: 'DE1' })]))
      const { 1: row } = await rows()
      expect(await store.eraseTenant({ actor: 'ana', at: clock.now() })).toMatchObject({ kind: 'erased' })
      expect(await store.columnKeys()).toEqual([])
      store = sealStore(opened.store, KEYS, randomBytes)
      const cipher = await openColumnCipher(store, { actor: 'test', at: clock.now() })
      expect(cipher.decrypt(String(row!['iban']))).toBeNull()
      expect(cipher.hash('a@b.c')).not.toBe(row!['email'])
    })

    test('changed rules are known until a listing that began with them is complete, and it rewrites unchanged records', async () => {
      const page = [upsert('1', { email: 'a@b.c', n: 1 })]
      await run(planOf(undefined, page))
      expect(await store.columnRules('crm')).toEqual([])
      const hashed = planOf({ hash: ['email'] }, page)
      const fingerprint = hashed.databases[0]!.columns!.fingerprint
      // A cycle that fails changes nothing.
      await run(
        planOf({ hash: ['email'] }, () => {
          throw new Error('down')
        }),
      )
      expect(await rulesOf()).toBe('')
      expect(logged.join()).toContain('the column rules have changed')
      expect((await run(hashed, { fresh: true })).counts).toMatchObject({ updated: 1 })
      expect(await rulesOf()).toBe(fingerprint)
      logged = []
      expect((await run(hashed)).counts).toMatchObject({ updated: 0, unchanged: 1 })
      expect(logged.join()).not.toContain('the column rules have changed')
      expect(await rulesOf()).toBe(fingerprint)
      // Rules that are removed are a change too.
      expect((await run(planOf(undefined, page))).counts).toMatchObject({ updated: 1 })
      expect([await rulesOf(), await rows()]).toEqual(['', { 1: { email: 'a@b.c', n: 1 } }])
    })

    test('a row that a quarantined record keeps as it was before the rules is counted until the record lands', async () => {
      const rules: ColumnRules = { hash: ['address.city'] }
      const page = (address: JsonObject | string): Change[] => [
        upsert('1', { address }),
        upsert('2', { address: null }),
      ]
      const changesOf = (plan: SyncPlan): ReturnType<typeof findColumnRuleChanges> =>
        findColumnRuleChanges(store, [plan], clock)
      const plan = planOf(rules, page('Kiel'))
      expect(await changesOf(plan)).toEqual([])
      await run(planOf(undefined, page('Kiel')))
      expect(await changesOf(plan)).toEqual([
        {
          database: 'people',
          sync: 'people',
          command: 'npx tidemark trigger people',
          rewrite: 'npx tidemark columns apply people',
        },
      ])
      await run(plan)
      await run(plan)
      expect(await changesOf(plan)).toMatchObject([{ command: 'npx tidemark quarantine list', quarantinedRows: 1 }])
      await run(planOf(rules, page({ city: 'Kiel' })))
      expect(await changesOf(plan)).toEqual([])
      // A row that follows the rules, and whose newer record is quarantined.
      await run(plan)
      expect(await changesOf(plan)).toEqual([])
    })

    async function rewrite(plan: SyncPlan, options: Partial<RewriteOptions> = {}): Promise<RewriteResult> {
      return rewriteColumns(plan, {
        store,
        ports: ports(),
        holder: 'p2',
        actor: 'ana',
        database: 'people',
        dryRun: false,
        random: randomBytes,
        signal: new AbortController().signal,
        ...options,
      })
    }

    test('stored rows are rewritten by changed rules without the source, and the next listing changes nothing', async () => {
      const page = [upsert('1', { email: 'a@b.c', n: 1, note: CANARY }), upsert('2', { n: 2 })]
      await run(planOf(undefined, page))
      const rules: ColumnRules = { drop: ['note'], hash: ['email'], cast: { n: 'text' }, rename: { n: 'number' } }
      const plan = planOf(rules, page)
      const before = await store.headSequence()
      expect(await rewrite(plan, { dryRun: true })).toMatchObject({ rows: 2, changed: 2, lost: {}, isApplied: false })
      expect([await store.headSequence(), await store.columnKeys()]).toEqual([before, []])
      expect(await rewrite(plan)).toEqual({ rows: 2, changed: 2, refused: 0, lost: {}, isApplied: true })
      const cipher = await openColumnCipher(store, { actor: 'test', at: clock.now() })
      const expected = { 1: { email: cipher.hash('a@b.c'), number: '1' }, 2: { number: '2' } }
      expect(await rows()).toEqual(expected)
      expect(await rulesOf()).toBe(plan.databases[0]!.columns!.fingerprint)
      expect(await findColumnRuleChanges(store, [plan], clock)).toEqual([])
      const [, entry] = await store.history('people', '1')
      expect(entry).toMatchObject({ action: 'updated', sync: 'people', cycle: 0, page: -1 })
      expect((await run(plan)).counts).toMatchObject({ created: 0, updated: 0, deleted: 0, unchanged: 2 })
      // A second rewriting has nothing to do.
      expect(await rewrite(plan)).toMatchObject({ changed: 0, isApplied: true })
      expect(await rows()).toEqual(expected)
    })

    test('XA3 a rewriting that is interrupted continues, and converts no row twice', async () => {
      const page = Array.from({ length: 450 }, (_, n) => upsert(String(n), { email: `${n}@b.c` }))
      await run(planOf(undefined, page))
      const plan = planOf({ hash: ['email'] }, page)
      let commits = 0
      const failing = new Proxy(store, {
        get(target, name: keyof Store) {
          const value: unknown = target[name]
          if (name === 'commit')
            return async (...args: Parameters<Store['commit']>) => {
              if (++commits === 2) throw new Error('the process is killed')
              return target.commit(...args)
            }
          return typeof value === 'function' ? (value.bind(target) as unknown) : value
        },
      })
      await expect(rewrite(plan, { store: failing })).rejects.toThrow('killed')
      expect(await rulesOf()).toBe('')
      expect(await rewrite(plan)).toMatchObject({ rows: 450, changed: 250, isApplied: true })
      expect((await run(plan)).counts).toMatchObject({ updated: 0, unchanged: 450 })
    })

    test('rows that were written by the new rules already are not converted again', async () => {
      await run(planOf(undefined, [upsert('1', { email: 'a@b.c' })], { mode: 'incremental' }))
      const plan = planOf({ hash: ['email'] }, [upsert('2', { email: 'd@e.f' })], { mode: 'incremental' })
      await run(plan)
      expect(await rewrite(plan)).toMatchObject({ rows: 2, changed: 1, isApplied: true })
      const cipher = await openColumnCipher(store, { actor: 'test', at: clock.now() })
      expect(await rows()).toEqual({ 1: { email: cipher.hash('a@b.c') }, 2: { email: cipher.hash('d@e.f') } })
      // Rules that change twice: the rows of each are converted from their own.
      const masked = planOf({ hash: ['email'], drop: ['n'] }, [upsert('3', { email: 'g', n: 1 })], {
        mode: 'incremental',
      })
      await run(masked)
      const last = planOf({ hash: ['email'], drop: ['n', 'm'] }, [], { mode: 'incremental' })
      expect(await rewrite(last)).toMatchObject({ rows: 3, changed: 0, isApplied: true })
    })

    test('what only the source has is named, and nothing is written', async () => {
      await run(planOf({ drop: ['note'], hash: ['email'] }, [upsert('1', { email: 'a@b.c', note: 'x' })]))
      const plan = planOf(undefined, [])
      expect(await rewrite(plan)).toEqual({
        rows: 1,
        changed: 0,
        refused: 0,
        lost: { 'note was removed by `drop`': 1, 'the original value of email is not stored': 1 },
        isApplied: false,
      })
      expect(await findColumnRuleChanges(store, [plan], clock)).toMatchObject([{ database: 'people' }])
    })

    test('a row that the rules cannot be applied to keeps its form, and the quarantined record of a row stays', async () => {
      const page = (address: JsonObject | string): Change[] => [
        upsert('1', { address }),
        upsert('2', { address: null }),
      ]
      await run(planOf(undefined, page('Kiel')))
      const rules: ColumnRules = { hash: ['address.city'] }
      expect(await rewrite(planOf(rules, []))).toMatchObject({ rows: 2, refused: 1, isApplied: false })
      await run(
        planOf(undefined, [{ type: 'invalid', key: '1', reason: 'unreadable', raw: '{' }, upsert('2', { n: 1 })]),
      )
      const dropped = planOf({ drop: ['address'] }, [])
      expect(await rewrite(dropped)).toMatchObject({ rows: 2, changed: 1, isApplied: true })
      expect(await rows()).toEqual({ 1: {}, 2: { n: 1 } })
      expect(await store.quarantineEntries({ ref: { worker: 'crm', sync: 'people' }, limit: 10 })).toHaveLength(1)
    })

    test('rows of a sync that no longer exists are not taken for converted ones', async () => {
      await run(planOf(undefined, [upsert('1', { n: 1 })]))
      const other = planOf({ drop: ['n'] }, [upsert('2', { n: 2 })])
      await run({ ...other, sync: 'persons', owner: 'crm/persons' })
      const plan = { ...other, sync: 'persons' }
      expect(await rewrite(plan)).toMatchObject({ lost: { 'it was written by people': 1 }, isApplied: false })
      expect(await rows()).toEqual({ 1: { n: 1 }, 2: {} })
      expect(await rewrite(plan, { others: new Set(['people']) })).toMatchObject({ rows: 1, isApplied: true })
    })

    test('rows that a delta writes by the old rules meanwhile are converted too, by the rules that it began with', async () => {
      const track = (columns: ColumnRules | undefined, changes: Change[]): { backfill: SyncPlan; delta: SyncPlan } => {
        const worker = new Worker({ name: 'crm' })
        const database = worker.database('people', columns === undefined ? {} : { columns })
        const page = async (): Promise<Page> => ({ changes, hasMore: false, nextState: { n: clock.now() } })
        const { backfill, delta } = worker.track('people', { database, source: { backfill: page, delta: page } })
        return { backfill: worker.plan(backfill), delta: worker.plan(delta) }
      }
      const old = track(undefined, [upsert('1', { email: 'a' }), upsert('2', { email: 'b' })])
      await run(old.backfill)
      const { backfill, delta } = track({ hash: ['email'] }, [upsert('4', { email: 'd' })])
      let isWritten = false
      const busy = new Proxy(store, {
        get(target, name: keyof Store) {
          const value: unknown = target[name]
          if (name === 'commit')
            return async (...args: Parameters<Store['commit']>) => {
              const outcome = await target.commit(...args)
              // A process of the old version: its cycle ends while the rows are rewritten.
              if (!isWritten) {
                isWritten = true
                await run(track(undefined, [upsert('2', { email: 'b2' }), upsert('3', { email: 'c' })]).delta)
                await run(delta)
              }
              return outcome
            }
          return typeof value === 'function' ? (value.bind(target) as unknown) : value
        },
      })
      expect(await rewrite(backfill, { store: busy })).toMatchObject({ refused: 0, lost: {}, isApplied: true })
      const cipher = await openColumnCipher(store, { actor: 'test', at: clock.now() })
      const hashes = ['a', 'b2', 'c', 'd'].map((text) => ({ email: cipher.hash(text) }))
      expect(Object.values(await rows())).toEqual(hashes)
      expect(await findColumnRuleChanges(store, [backfill, delta], clock)).toEqual([])
    })

    test('a renamed column keeps its type', async () => {
      await run(
        planOf(undefined, {
          changes: [upsert('1', { amount: 1 })],
          hasMore: false,
          nextState: null,
          tables: [{ columns: [{ name: 'amount', type: 'numeric' }] }],
        }),
      )
      expect(await rewrite(planOf({ rename: { amount: 'total' } }, []))).toMatchObject({ changed: 1, isApplied: true })
      expect((await columnsOf())['total']).toBe('numeric')
    })

    test('a listing that was resumed with other rules does not count', async () => {
      const pages = (): (() => Page) => {
        let calls = 0
        return () => ({ changes: [upsert(String(++calls), { email: 'a@b.c' })], hasMore: calls < 2, nextState: calls })
      }
      await run(planOf(undefined, [upsert('1', { email: 'x' })]))
      await run(planOf({ hash: ['email'] }, pages(), { limits: { pagesMax: 1 } }))
      const masked = planOf({ mask: { email: '***' } }, [upsert('1', { email: 'x' }), upsert('2', { email: 'y' })])
      expect(await run(masked)).toMatchObject({ stopReason: 'complete', resumed: true })
      expect(await rulesOf()).toBe('')
      await run(masked)
      expect(await rulesOf()).toBe(masked.databases[0]!.columns!.fingerprint)
    })

    test('an incremental sync follows new rules only after it has read everything again', async () => {
      const incremental = (rules: ColumnRules): SyncPlan =>
        planOf(rules, [upsert('1', { email: 'a@b.c' })], { mode: 'incremental' })
      const [first, second] = [incremental({ hash: ['email'] }), incremental({ drop: ['email'] })]
      await run(first)
      expect(await rulesOf()).toBe(first.databases[0]!.columns!.fingerprint)
      await run(second)
      await run(second)
      expect(await rulesOf()).toBe(first.databases[0]!.columns!.fingerprint)
      expect(logged.join()).toContain('tidemark state reset people')
    })

    test('a replay does not apply the rules twice, and applies them to records that were quarantined before', async () => {
      const strict = { schemaChanges: 'quarantine' as const }
      const schema = { type: 'object', required: ['more'] }
      const replay = async (plan: SyncPlan): Promise<(readonly [string, string])[]> => {
        const results = await replayQuarantinedRecords(plan, { store, ports: ports(), holder: 'p2', actor: 'ana' })
        return results.map(({ outcome, entry }) => [entry.key ?? '', outcome] as const)
      }
      await run(planOf(undefined, [upsert('raw', { email: 'a@b.c' })], { mode: 'incremental', database: { schema } }))
      const rules: ColumnRules = { hash: ['email'] }
      await run(
        planOf(rules, [upsert('1', { email: 'a@b.c', more: 1 }), upsert('2', { email: 'a@b.c' })], {
          mode: 'incremental',
          database: { schema },
        }),
      )
      await run(
        planOf(rules, [upsert('3', { email: 'a@b.c', more: 'text' })], { mode: 'incremental', database: strict }),
      )
      expect((await store.quarantineEntries({ limit: 9 })).map(({ key }) => String(key)).toSorted()).toEqual([
        '2',
        '3',
        'raw',
      ])
      const other = planOf({ mask: { email: 'x' } }, [], { mode: 'incremental' })
      expect(
        await replayQuarantinedRecords(other, { store, ports: ports(), holder: 'p2', actor: 'ana', dryRun: true }),
      ).toMatchObject([{ outcome: 'landed' }, { outcome: 'lost' }, { outcome: 'lost' }])
      expect((await replay(planOf(rules, [], { mode: 'incremental' }))).map(([, outcome]) => outcome)).toEqual([
        'landed',
        'landed',
        'landed',
      ])
      const stored = await rows()
      expect(Object.keys(stored)).toEqual(['1', '2', '3', 'raw'])
      expect(new Set(Object.values(stored).map((row) => row['email']))).toEqual(new Set([stored['1']!['email']]))
    })

    test('the column key is created once, by concurrent processes too', async () => {
      const others = Array.from({ length: 4 }, () => sealStore(opened.store, KEYS, randomBytes))
      const ciphers = await Promise.all(others.map((other) => openColumnCipher(other, { actor: 'test', at: 1 })))
      expect(new Set(ciphers.map((cipher) => cipher.hash('x'))).size).toBe(1)
      const [key] = await store.columnKeys()
      expect(new ColumnCipher('default', [key!]).hash('x')).toBe(ciphers[0]!.hash('x'))
      expect(
        (await store.auditChain({ before: 1e9, limit: 9 })).entries.filter(({ action }) => action === 'new-column-key'),
      ).toHaveLength(1)
    })
  })
}
