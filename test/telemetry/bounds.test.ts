import { expect, test } from 'vitest'
import { Worker } from '../../src/worker/worker.ts'
import { METRICS, type Attributes, type Meter, type MetricName } from '../../src/contract/index.ts'
import { LABEL_VALUES_MAX } from '../../src/platform/label-limiter.ts'
import { openTelemetry } from '../../src/platform/open-telemetry.ts'
import { listDeclaredSyncs } from '../../src/runner/declared-sync.ts'
import { TENANT_GAUGES, Metrics } from '../../src/server/metrics.ts'
import { SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { addKey, ServerFixture } from '../server/server-fixture.ts'
import { openHarness } from '../stores/sqlite-harness.ts'
import { TelemetryRecorder } from './telemetry-recorder.ts'

const MANY = 5_000

/** More syncs, tenants, hosts and statuses than any real installation has. */
function noteMany(meter: Meter): void {
  for (let n = 0; n < MANY; n++) {
    const labels: Attributes = {
      'tidemark.tenant': `tenant-${n}`,
      'tidemark.worker': `worker-${n % 7}`,
      'tidemark.sync': `sync-${n}`,
      'tidemark.stop_reason': 'complete',
      'tidemark.outcome': 'landed',
      'tidemark.reason': 'pacer',
      'error.type': 'SOURCE_TIMEOUT',
      'http.request.method': 'GET',
      'server.address': `host-${n}.example.com`,
      'http.response.status_code': 100 + (n % 500),
      'tidemark.webhook': `wh_${n}`,
      'tidemark.cycle': n,
    }
    for (const metric of Object.keys(METRICS) as MetricName[]) meter.record(metric, 1, labels)
  }
}

test(`${MANY} syncs, tenants and hosts make a bounded number of series for OpenTelemetry: the rest is one series, and the sum is complete`, async () => {
  const watcher = new TelemetryRecorder()
  noteMany((await openTelemetry())!.meter)
  const cycles = await watcher.points('tidemark.cycles')
  expect(cycles.length).toBe(LABEL_VALUES_MAX.syncs + 1)
  expect(cycles.reduce((sum, { value }) => sum + value, 0)).toBe(MANY)
  expect(cycles.find(({ labels }) => labels['tidemark.sync'] === 'other')).toMatchObject({
    labels: { 'tidemark.worker': 'other' },
    value: MANY - LABEL_VALUES_MAX.syncs,
  })
  expect((await watcher.points('http.client.request.duration')).length).toBeLessThanOrEqual(
    (LABEL_VALUES_MAX.hosts + 1) * (LABEL_VALUES_MAX.statuses + 1),
  )
  for (const { name } of Object.values(METRICS))
    expect([name, JSON.stringify(await watcher.points(name)).includes('tenant')]).toEqual([name, false])
})

test('AX10 the same at /metrics: also with as many declared syncs, API keys and requested addresses', async () => {
  const metrics = new Metrics()
  noteMany(metrics)
  const worker = new Worker({ name: 'shop' })
  const database = worker.database('things')
  for (let n = 0; n < MANY; n++)
    worker.sync(`sync-${n}`, {
      database,
      mode: 'incremental',
      schedule: 'manual',
      execute: async () => ({ changes: [], hasMore: false, nextState: 1 }),
    })
  const stand = await ServerFixture.open(openHarness, {
    metrics,
    syncs: listDeclaredSyncs(worker),
    runnerCapacity: () => ({ slots: 4, running: 1, waiting: 2 }),
  })
  const { app } = stand.server
  for (let n = 0; n < MANY; n++)
    await app.inject({ url: `/agents/v1/database-${n}/key-${n}`, headers: { authorization: `Bearer key-${n}` } })

  const text = await scrape(stand)
  const series = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  // As the guide says.
  expect(series.length).toBeLessThan(10_000)
  for (const gauge of ['tidemark_sync_failures', 'tidemark_sync_running'] satisfies (keyof typeof TENANT_GAUGES)[])
    expect(series.filter((line) => line.startsWith(gauge)).length).toBe(LABEL_VALUES_MAX.syncs + 1)
  expect(series).toContain(
    `tidemark_cycles_total{worker="other",sync="other",stop_reason="complete"} ${MANY - LABEL_VALUES_MAX.syncs}`,
  )
  expect(series).toContain('tidemark_http_requests_total{route="/agents/v1/:database/:key",status="4xx"} 5000')
  expect(series).toEqual(
    expect.arrayContaining(['tidemark_runner_slots 4', 'tidemark_runner_running 1', 'tidemark_runner_waiting 2']),
  )
  expect(text).not.toMatch(/tenant|key-\d|database-\d|host-2\d\.|wh_/)
})

test('of the syncs beyond the limit the worst is reported', async () => {
  const stand = await ServerFixture.open(openHarness)
  const now = Date.now()
  for (let n = 0; n < LABEL_VALUES_MAX.syncs + 3; n++) {
    const ref = { worker: 'crm', sync: `s${String(n).padStart(3, '0')}` }
    const taken = await stand.store.acquire(ref, { holder: `h${n}`, ttlMs: 60_000, at: now })
    if (taken.kind === 'held') throw new Error('held')
    // The last but one has failed, the last is still running.
    if (n === LABEL_VALUES_MAX.syncs + 2) break
    const { inflight } = (await stand.store.beginCycle(taken.lease, {
      at: now,
      mode: 'incremental',
      trigger: 'test',
      fresh: false,
      databases: ['things'],
    }))!
    const error = n === LABEL_VALUES_MAX.syncs + 1 ? { code: 'SOURCE_TIMEOUT' as const, message: 'no' } : null
    await stand.store.release(taken.lease, {
      cycle: inflight.cycle,
      stopReason: error === null ? 'paused' : 'error',
      endedAt: now,
      pages: 0,
      retries: 0,
      waitedMs: 0,
      counts: { created: 0, updated: 0, deleted: 0, swept: 0, unchanged: 0, stale: 0, missing: 0, quarantined: 0 },
      error,
      retryAt: null,
    })
  }
  const series = (await scrape(stand)).split('\n')
  expect(series).toEqual(
    expect.arrayContaining([
      'tidemark_sync_failures{worker="crm",sync="s000"} 0',
      'tidemark_sync_failures{worker="other",sync="other"} 1',
      'tidemark_sync_running{worker="other",sync="other"} 1',
    ]),
  )
})

test('a backfill has no lag of its own, however old it is: its delta reports later changes', async () => {
  const worker = new Worker({ name: 'shop' })
  const page = async () => ({ changes: [], hasMore: false })
  worker.track('orders', {
    database: worker.database('orders'),
    source: { backfill: page, delta: page, anchor: async () => ({}) },
  })
  worker.sync('countries', { database: worker.database('countries'), schedule: 'manual', execute: page })
  const stand = await ServerFixture.open(openHarness, { syncs: listDeclaredSyncs(worker) })
  for (const sync of ['orders', 'orders-backfill', 'countries'])
    await (await SyncDriver.acquire(stand.store, { worker: 'shop', sync })).cycle([upsert('a', {})])
  const told = (await scrape(stand))
    .split('\n')
    .filter((line) => line.startsWith('tidemark_sync_lag_seconds{'))
    .map((line) => /sync="([^"]+)"/.exec(line)![1]!)
  expect(told.toSorted()).toEqual(['countries', 'orders'])
})

test('Z8 another tenant learns nothing: neither names of syncs nor activity of the process', async () => {
  const metrics = new Metrics()
  metrics.record('cycles', 1, {
    'tidemark.worker': 'heron',
    'tidemark.sync': 'heron',
    'tidemark.stop_reason': 'complete',
  })
  const stand = await ServerFixture.open(openHarness, {
    metrics,
    runnerCapacity: () => ({ slots: 77, running: 0, waiting: 0 }),
  })
  await (await SyncDriver.acquire(stand.store, { worker: 'heron', sync: 'heron' })).cycle([upsert('a', {})])
  const acme = stand.store.forTenant('acme')
  await (await SyncDriver.acquire(acme, { worker: 'egret', sync: 'egret' })).cycle([upsert('a', {})])
  const theirs = await scrape(stand, await addKey(acme, ['admin']))
  const ours = await scrape(stand)
  expect([
    /heron|tidemark_runner|tidemark_cycles|tidemark_http|acme|default/.test(theirs),
    theirs.includes('tidemark_sync_lag_seconds{worker="egret",sync="egret"}'),
  ]).toEqual([false, true])
  expect([
    /egret|acme/.test(ours),
    ours.includes('tidemark_sync_lag_seconds{worker="heron",sync="heron"}'),
    ours.includes('tidemark_runner_slots 77'),
    ours.includes('tidemark_cycles_total{worker="heron"'),
  ]).toEqual([false, true, true, true])
})

async function scrape(stand: ServerFixture, key: string | null = null): Promise<string> {
  const { status, text } = await stand.get('/metrics', { key })
  expect(status).toBe(200)
  return text
}
