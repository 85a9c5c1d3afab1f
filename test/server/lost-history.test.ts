import { expect, test } from 'vitest'
import { Worker } from '../../src/worker/worker.ts'
import { runCycle } from '../../src/engine/cycle.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { listDeclaredSyncs } from '../../src/runner/declared-sync.ts'
import { openHarness } from '../stores/sqlite-harness.ts'
import { addKey, ServerFixture, type Body } from './server-fixture.ts'

const DAY = 24 * 3_600_000

function shop(): Worker {
  const worker = new Worker({ name: 'office' })
  const row = { type: 'upsert', key: 'a', record: { value: 1 } } as const
  worker.track('shop', {
    database: worker.database('things'),
    retentionMs: 30 * DAY,
    source: {
      anchor: async () => ({ after: 1 }),
      backfill: async () => ({ changes: [row], hasMore: false }),
      delta: async (state = { after: 1 }) => ({ changes: [], hasMore: false, nextState: state }),
    },
  })
  return worker
}

test('XC32 the API, the console and the metrics report the backfill as soon as the source has dropped changes, before anything runs', async () => {
  const worker = shop()
  const stand = await ServerFixture.open(openHarness, { syncs: listDeclaredSyncs(worker) })
  const key = await addKey(stand.store, ['sync:read'])
  const ports = { clock: systemClock, random: systemRandom, log: { debug() {}, info() {}, warn() {}, error() {} } }
  for (const sync of ['shop-backfill', 'shop']) {
    const result = await runCycle(worker.plan(sync), {
      store: stand.store,
      ports,
      fetch,
      secrets: { get: (name) => name },
      holder: 'test',
      trigger: 'test',
      signal: new AbortController().signal,
    })
    expect(result.stopReason).toBe('complete')
  }
  const look = async (): Promise<object> => {
    const api = (await stand.get('/api/syncs', { key })).body.data as Body[]
    const overview = (await stand.get('/console/api/overview', { key })).body.data as Body
    const { text } = await stand.get('/metrics', { key })
    const gauges = [...text.matchAll(/^tidemark_sync_backfill_needed\{.*\} (\d)$/gm)].map(([, value]) => Number(value))
    const healthy = /^tidemark_syncs\{[^}]*HEALTHY[^}]*\} (\d+)$/m.exec(text)?.[1]
    const told = ({ health, backfillNeeded }: Body) => [
      health,
      backfillNeeded?.reason.replace(/at \S+,/, 'then,') ?? null,
    ]
    return {
      api: api.map(told),
      console: (overview.syncs as Body[]).map(told),
      coverage: overview.syncs[0].coverage.parts[0].state,
      gauges,
      healthy,
    }
  }
  const fine = ['HEALTHY', null]
  expect(await look()).toEqual({
    api: [fine, fine],
    console: [fine, fine],
    coverage: 'proven',
    gauges: [0, 0],
    healthy: '2',
  })

  stand.shift.ms = 31 * DAY
  const lost = ['WARNING', 'shop was last complete then, and its source keeps changes and deletions for 30 days only.']
  expect(await look()).toEqual({
    api: [lost, lost],
    console: [lost, lost],
    coverage: 'hole',
    gauges: [1, 1],
    healthy: '0',
  })
})
