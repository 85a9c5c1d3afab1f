import { expect, test } from 'vitest'
import { VENDOR_STREAMS } from '../../src/testing/simulation/vendors/vendor-streams.ts'
import { Worker } from '../../src/index.ts'

const NO_LAG = { share: 0, maxMs: 0 }
const tracked = VENDOR_STREAMS.map((stream) => ({
  name: `${stream.vendor} ${stream.name}`,
  source: stream.source({ pageSize: 5, lag: NO_LAG, limited: false }),
})).filter(({ source }) => 'backfill' in source)

test('there are sources with a listing and a delta', () => expect(tracked.length).toBeGreaterThan(4))

test.for(tracked)(
  '$name: a sync declared with the listing alone sweeps with the lag and the lookup of the pair',
  ({ source }) => {
    if (!('backfill' in source)) throw new Error('The source has no listing.')
    const worker = new Worker({ name: 'w' })
    const database = worker.database('rows')
    worker.track('pair', { database, source })
    const alone = new Worker({ name: 'w' })
    alone.sync('listing', { database: alone.database('rows'), mode: 'replace', execute: source.backfill })
    const { lagMs, lookup } = worker.plan('pair-backfill')
    expect(alone.plan('listing')).toMatchObject({ lagMs, lookup })
  },
)

test('an option of the sync takes precedence over the default of its listing', () => {
  const worker = new Worker({ name: 'w' })
  const execute = Object.assign(async () => ({ changes: [], hasMore: false, nextState: {} }), { lagMs: 5_000 })
  worker.sync('listing', { database: worker.database('rows'), execute, lagMs: 0 })
  expect(worker.plan('listing').lagMs).toBe(0)
})
