import { StripeSimulator, type Fields } from '@tidemark/simulators'
import { stripe } from '../../../sources/stripe/source.ts'
import type { VendorStream } from './vendor-stream.ts'
import { formatWriteNumber, parseWriteNumber } from './write-numbers.ts'
import { required } from '../../../values/required.ts'

const RESPONSE_FAULTS: ReadonlySet<string> = new Set(['wrong-date', 'end-flag-never', 'short-page', 'page-repeated'])

/**
 * A list or the event log. Single objects decide between a list and an event, and have no modification time: if a cache
 * served those too, despite the request's `no-cache`, no reader of Stripe could determine which version is newer.
 */
function isPage(url: URL): boolean {
  return /^\/v1\/\w+$/.test(url.pathname)
}

/** A page of a nested list. */
function isNestedPage(url: URL): boolean {
  return /^\/v1\/\w+\/\w+\/\w+$/.test(url.pathname)
}

/** Lists newest first; an event log with delayed events, in whole seconds. */
const stream = (
  name: 'coupons' | 'customers' | 'invoices',
  type: string,
  text: string,
): Omit<VendorStream, 'fields'> => ({
  vendor: 'stripe',
  name,
  type,
  keyField: 'id',
  lagMaxMs: 9_000,
  retentionMs: 30 * 24 * 3_600_000,
  readsLog: true,
  open: (ports, { lag, limited }) =>
    new StripeSimulator(ports, { lag, ...(limited && { rateLimit: { requests: 25, perMs: 1_000 } }) }),
  pacer: { allowedRequests: 20, intervalMs: 1_000 },
  source: ({ pageSize }) => ({
    ...stripe({ apiKey: 'TOKEN', baseUrl: 'https://vendor.test/v1', limit: pageSize, followUpsMax: 3 })[name],
    guarantee: {
      windowMs: 11_000,
      startsFrom: 'anchor',
      reports: () => ({ changes: true, deletes: true }),
      cyclesPerRound: 1,
    },
  }),
  writeNumberOf: (row) => parseWriteNumber(row[text]),
  granularityMs: () => 1_000,
  rowOf: (record) => record,
  // `has_more` is the only sign of whether more follow.
  supportsFault: (fault, { url }) =>
    RESPONSE_FAULTS.has(fault) ||
    (fault === 'cached-page' && isPage(url)) ||
    (fault === 'cached-nested-page' && isNestedPage(url)),
  repeats: 'page-before',
  tokenOf: ({ url }) => url.searchParams.get('starting_after') ?? url.searchParams.get('ending_before'),
})

export const stripeCustomers: VendorStream = {
  ...stream('customers', 'customer', 'name'),
  fields: (n) => ({ name: formatWriteNumber(n) }),
}

/** Objects that can be deleted and have no parent. */
export const stripeCoupons: VendorStream = {
  ...stream('coupons', 'coupon', 'name'),
  fields: (n) => ({ name: formatWriteNumber(n) }),
}

/** Each with a nested list, which is truncated after ten and continues elsewhere. */
export const stripeInvoices: VendorStream = {
  ...stream('invoices', 'invoice', 'number'),
  fields: (n, chance) => ({
    number: formatWriteNumber(n),
    lines: Array.from({ length: chance.pick([0, 2, 12, 25]) }, (_, at) => ({ amount: n * 100 + at })),
  }),
  rowOf: (record, simulator) => {
    const id = String(record['id'])
    const items = required(simulator.records.find('invoice', id), 'the match in simulator.records').fields[
      'lines'
    ] as Fields[]
    const data = items.map((item, at) => ({
      id: `il_${id.slice('in_'.length)}${String(at).padStart(4, '0')}`,
      object: 'line_item',
      ...item,
    }))
    return { ...record, lines: { ...(record['lines'] as Fields), data, has_more: false } }
  },
}
