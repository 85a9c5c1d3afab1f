import { describe, expect, test } from 'vitest'
import type { VerificationReport } from '../../src/contract/index.ts'
import { DATABASE, SECOND, VerifyFixture, type SourceRow } from './verify-fixture.ts'

const NONE = { missing: 0, stale: 0, extra: 0 }
const found = ({ found: list }: VerificationReport) =>
  list.map(({ key, kind, isSettled }) => `${key} ${kind}${isSettled ? '' : '?'}`)

/** Plants one difference of every kind in the copy, behind the back of the source. */
async function plantDifferences(fixture: VerifyFixture): Promise<void> {
  const { shop } = fixture
  const hidden = new Map<string, SourceRow>(shop.rows)
  hidden.delete('k00002')
  hidden.set('k00004', { ...hidden.get('k00004')!, v: -4 })
  hidden.set('x-gone', { v: 1, at: fixture.scene.clock.now() - 500 * SECOND })
  const real = new Map(shop.rows)
  shop.rows.clear()
  for (const [key, row] of hidden) shop.rows.set(key, row)
  await fixture.sync()
  shop.rows.clear()
  for (const [key, row] of real) shop.rows.set(key, row)
}

describe.each([
  ['digests', { checks: true }],
  ['listing', {}],
  ['listing', { lookup: false }],
] as const)('by %s, %j', (method, options) => {
  test('a copy that equals the source is certified as equal', async () => {
    const fixture = await (await VerifyFixture.open(options)).fill(20)
    const report = await fixture.report()
    expect(report).toMatchObject({ method, differences: NONE, unsettled: 0, incomplete: null, error: null, rows: 20 })
    expect(fixture.shop.requests.length).toBe(report.requests)
    const [stored] = await fixture.scene.store.lastVerifications()
    expect(stored).toMatchObject({ id: 1, database: DATABASE, actor: 'ana', report })
  })

  test('a missing, a stale and an extra row are found, and a repair lands exactly these', async () => {
    const fixture = await (await VerifyFixture.open(options)).fill(9)
    await plantDifferences(fixture)
    const report = await fixture.report()
    // The tidemark promises the missing row; the others may have changed since the last cycle.
    expect(found(report)).toEqual(['k00002 missing', 'k00004 stale?', 'x-gone extra?'])
    expect(report).toMatchObject({ differences: { ...NONE, missing: 1 }, unsettled: 2, repaired: 0 })

    const before = await fixture.scene.feed()
    const checkpoint = await fixture.scene.checkpoint()
    const repaired = await fixture.report({ repair: true })
    expect(repaired).toMatchObject({ unsettled: 2, repaired: 3, error: null })
    const after = (await fixture.scene.feed()).slice(before.length)
    expect(after.map(({ key, action, cycle, page }) => [key, action, cycle, page])).toEqual([
      ['k00002', 'created', 0, 2],
      ['k00004', 'updated', 0, 2],
      ['x-gone', 'deleted', 0, 2],
    ])
    expect(await fixture.scene.rows()).toEqual(
      Object.fromEntries([...fixture.shop.rows].map(([key, { v }]) => [key, { v }])),
    )
    expect(await fixture.scene.checkpoint()).toMatchObject({
      version: checkpoint.version,
      committed: checkpoint.committed,
      tidemark: checkpoint.tidemark,
    })
    expect((await fixture.scene.store.audit({ worker: 'shop', sync: 'sync' }, { limit: 1 }))[0]).toMatchObject({
      action: 'repair',
      actor: 'ana',
      reason: 'repaired by verification 2',
    })
    expect(await fixture.report()).toMatchObject({ unsettled: 0, differences: NONE })
  })
})

describe('what is a difference', () => {
  test('a difference that is still there after a complete cycle is settled', async () => {
    const fixture = await (await VerifyFixture.open()).fill(6)
    fixture.shop.set('new', { v: 1 })
    expect(found(await fixture.report())).toEqual(['new missing?'])
    // The next cycle loses the row too.
    fixture.shop.lie = () => new Map([...fixture.shop.rows].filter(([key]) => key !== 'new'))
    await fixture.sync()
    fixture.shop.lie = null
    const report = await fixture.report()
    expect(found(report)).toEqual(['new missing'])
    expect(report).toMatchObject({ differences: { missing: 1, stale: 0, extra: 0 }, unsettled: 0 })
  })

  test('invariant 12: a version with a time at or before the tidemark is settled at once', async () => {
    const fixture = await VerifyFixture.open({
      plan: {
        execute: async () => ({
          changes: [],
          hasMore: false,
          tidemark: new Date(fixture.scene.clock.now() - 60 * SECOND).toISOString(),
        }),
      },
    })
    const listing = fixture.shop.execute
    await fixture.scene.run({ ...fixture.plan })
    const now = fixture.scene.clock.now()
    fixture.shop.set('old', { v: 1, at: now - 61 * SECOND }).set('young', { v: 1, at: now - 59 * SECOND })
    Object.assign(fixture.plan, { execute: listing })
    expect(found(await fixture.report())).toEqual(['old missing', 'young missing?'])
  })

  test('rows that a cycle lands while they are compared are no differences', async () => {
    const fixture = await (await VerifyFixture.open({ plan: { lagMs: 30 * SECOND } })).fill(6)
    fixture.shop.set('new', { v: 1 })
    const verifying = fixture.start()
    await fixture.scene.clock.advance(SECOND)
    const running = fixture.scene.start(fixture.plan)
    const { verification } = await fixture.scene.clock.drive(verifying)
    await running
    expect(verification.report).toMatchObject({ differences: NONE, unsettled: 0, moved: 1 })
  })

  test('a page of a lagging replica is no difference, and the verification waits for the lag of the source', async () => {
    const fixture = await (await VerifyFixture.open({ plan: { lagMs: 30 * SECOND } })).fill(6)
    const stale = new Map(fixture.shop.rows).set('k00001', { v: -1, at: 1 })
    fixture.shop.set('k00003', { v: 33, at: fixture.scene.clock.now() })
    await fixture.sync()
    stale.delete('k00004')
    fixture.shop.lie = () => stale
    const startedAt = fixture.scene.clock.now()
    const report = await fixture.report()
    expect(report).toMatchObject({ differences: NONE, unsettled: 0, moved: 3 })
    expect(report.endedAt - startedAt).toBeGreaterThanOrEqual(30 * SECOND)
  })

  test('a listing that is wrongly empty makes no row extra, and a repair deletes nothing', async () => {
    const fixture = await (await VerifyFixture.open()).fill(6)
    fixture.shop.lie = () => new Map()
    expect(await fixture.report({ repair: true })).toMatchObject({ differences: NONE, unsettled: 0, moved: 6 })
    expect(await fixture.scene.keys()).toHaveLength(6)
  })

  test('differences in ignored fields are counted and are no differences, also for digests', async () => {
    for (const checks of [false, true]) {
      const fixture = await VerifyFixture.open({ checks })
      fixture.shop.set('a', { v: 1, seen: 1 }).set('b', { v: 1, seen: 1 })
      await fixture.sync()
      fixture.shop.set('a', { v: 1, seen: 2 })
      expect(await fixture.report({ ignore: ['seen'] })).toMatchObject({
        differences: NONE,
        unsettled: 0,
        ignored: checks ? 0 : 1,
      })
      expect(await fixture.report()).toMatchObject({ unsettled: 1 })
    }
  })

  test('a row that changes whenever it is compared makes the result incomplete, not different', async () => {
    const fixture = await (await VerifyFixture.open()).fill(3)
    let v = 100
    fixture.shop.onRequest = () => void fixture.shop.set('k00001', { v: v++ })
    expect(await fixture.report()).toMatchObject({ differences: NONE, unsettled: 0, incomplete: 'moved' })
  })
})

describe('bounds', () => {
  test('the request budget is not exceeded, and the result says that it is incomplete', async () => {
    const fixture = await (await VerifyFixture.open()).fill(20)
    const report = await fixture.report({ budget: 3 })
    expect(report).toMatchObject({ incomplete: 'budget', requests: 3, rows: 9 })
    expect(fixture.shop.requests).toHaveLength(3)
  })

  test('a sample looks up rows of the copy, and says that it is a sample', async () => {
    const fixture = await (await VerifyFixture.open()).fill(20)
    fixture.shop.rows.delete('k00000')
    const report = await fixture.report({ scope: { kind: 'sample', rows: 20 } })
    expect(report).toMatchObject({ method: 'sample', rows: 20, incomplete: 'sample' })
    expect(found(report)).toEqual(['k00000 extra?'])
  })

  test('invariant 11: a repair above the delete limit deletes nothing, lands the others and fails', async () => {
    const fixture = await (await VerifyFixture.open()).fill(6)
    for (let n = 1; n < 6; n++) fixture.shop.rows.delete(`k0000${n}`)
    fixture.shop.set('new', { v: 1 })
    const report = await fixture.report({ repair: true })
    expect(report).toMatchObject({ error: { code: 'MASS_DELETE' }, repaired: 1 })
    expect(await fixture.scene.keys()).toHaveLength(7)
    expect(await fixture.report({ repair: true, allowDeletes: true })).toMatchObject({ error: null, repaired: 5 })
    expect(await fixture.scene.keys()).toEqual(['k00000', 'new'])
  })

  test('two verifications of a database do not run at once', async () => {
    const fixture = await (await VerifyFixture.open()).fill(3)
    const first = await fixture.scene.store.beginVerification(DATABASE, {
      holder: 'other',
      actor: 'ben',
      ttlMs: 60_000,
      at: fixture.scene.clock.now(),
    })
    await expect(fixture.verify()).rejects.toMatchObject({ code: 'LEASE_HELD', message: /other/ })
    await fixture.scene.clock.advance(61 * SECOND)
    expect(await fixture.report()).toMatchObject({ error: null })
    expect(await fixture.scene.store.renewVerification(first!, { ttlMs: 1, at: 0 })).toBe(false)
  })

  test('invariant 3: a repair waits for the lease of a running cycle, and gives up after a minute', async () => {
    const fixture = await (await VerifyFixture.open()).fill(3)
    fixture.shop.set('new', { v: 1 })
    const request = { holder: 'runner', ttlMs: 3_600_000, at: fixture.scene.clock.now() }
    await fixture.scene.store.acquire({ worker: 'shop', sync: 'sync' }, request)
    const report = await fixture.report({ repair: true })
    expect(report).toMatchObject({ error: { code: 'LEASE_HELD' }, unsettled: 1, repaired: 0 })
    expect(await fixture.scene.keys()).toHaveLength(3)
  })

  test('a source without a listing and without a lookup cannot be verified', async () => {
    const fixture = await VerifyFixture.open({
      lookup: false,
      plan: { mode: 'incremental', pair: { role: 'delta', backfill: 'none' } },
    })
    await expect(fixture.verify()).rejects.toMatchObject({ code: 'VERIFY_UNSUPPORTED' })
  })

  test('an unknown database is refused with the nearest name', async () => {
    const fixture = await VerifyFixture.open()
    const { planVerification } = await import('../../src/verify/verification-plan.ts')
    expect(() => planVerification([fixture.plan], 'thing')).toThrow(/things/)
  })
})
