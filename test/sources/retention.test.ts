import { expect, test } from 'vitest'
import { hubspot } from '../../src/sources/hubspot/source.ts'
import { rest } from '../../src/sources/rest/source.ts'
import { salesforce } from '../../src/sources/salesforce/source.ts'
import { servicenow } from '../../src/sources/servicenow/source.ts'
import { stripe } from '../../src/sources/stripe/source.ts'
import { kafka } from '../../src/sources/kafka/source.ts'

const DAY = 86_400_000

/** The last complete cycle did not see a change that became visible `lagMs` late. */
test.each([
  [
    'Salesforce: the recycle bin',
    salesforce({ instanceUrl: 'https://x.example', accessToken: 'T' }).object('Account').delta,
    15 * DAY,
  ],
  ['HubSpot: the archive', hubspot({ accessToken: 'T' }).contacts.delta, 90 * DAY],
  [
    'ServiceNow: the audit, by default',
    servicenow({ instanceUrl: 'https://x.example', user: 'U', password: 'P' }).table('incident').delta,
    30 * DAY,
  ],
  ['Stripe: the events', stripe({ apiKey: 'K' }).customers.delta, 30 * DAY],
])('XC32 %s: the delta declares how far back it can look, less its lag', (_, delta, keptMs) => {
  expect(delta.retentionMs).toBeLessThan(keptMs)
  expect(delta.retentionMs).toBeGreaterThan(keptMs - 60_000)
})

test('XC32 rest: the shortest retention of the stream, its events and its deletions', () => {
  const window = { kind: 'window', since: 'since', page: { kind: 'none' } } as const
  const shared = {
    path: '/x',
    key: 'id',
    updatedAt: 'at',
    page: { kind: 'none' },
    follow: window,
    lagMs: 1_000,
  } as const
  const source = rest({
    baseUrl: 'https://x.example',
    streams: [
      { ...shared, name: 'marked', deleted: 'gone', retentionMs: 10 * DAY },
      {
        ...shared,
        name: 'apart',
        retentionMs: 10 * DAY,
        deletes: { path: '/gone', key: 'id', updatedAt: 'at', follow: window, retentionMs: 7 * DAY },
      },
      { ...shared, name: 'kept', deleted: 'gone' },
    ],
  })
  expect(source.marked.delta.retentionMs).toBe(10 * DAY - 1_000)
  expect(source.apart.delta.retentionMs).toBe(7 * DAY - 1_000)
  expect(source.kept.delta.retentionMs).toBeUndefined()
})

test('XC32 kafka: the retention of the tombstones of the topic', () => {
  const source = kafka({ brokers: ['127.0.0.1:1'] })
  expect(source.topic('orders', { tombstonesMs: DAY }).delta.retentionMs).toBe(DAY)
  expect(source.topic('orders').delta.retentionMs).toBeUndefined()
})
