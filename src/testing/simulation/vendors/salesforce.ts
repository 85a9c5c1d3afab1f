import { SalesforceSimulator } from '@tidemark/simulators'
import { salesforce } from '../../../sources/salesforce/source.ts'
import type { ResponseFault, VendorConditions, VendorSource, VendorStream } from './vendor-stream.ts'
import { formatWriteNumber, parseWriteNumber } from './write-numbers.ts'

function source({ pageSize }: VendorConditions, metadata: boolean): VendorSource {
  return {
    ...salesforce({
      instanceUrl: 'https://vendor.test',
      accessToken: 'TOKEN',
      limit: pageSize,
      metadata,
      bulk: false,
    }).object('Account'),
    guarantee: {
      windowMs: 16_000,
      startsFrom: 'first',
      reports: () => ({ changes: true, deletes: true }),
      cyclesPerRound: 1,
    },
  }
}

const RESPONSE_FAULTS: ReadonlySet<ResponseFault> = new Set([
  'cached-page',
  'empty-page',
  'end-flag-early',
  'end-flag-never',
  'page-repeated',
  'short-page',
  'wrong-date',
  'wrong-total',
])

/**
 * By creation and by the last change; deleted rows stay in the recycle bin. `done` may be wrong, and locators expire.
 */
export const salesforceAccounts: VendorStream = {
  vendor: 'salesforce',
  name: 'accounts',
  type: 'Account',
  keyField: 'Id',
  lagMaxMs: 14_000,
  retentionMs: 15 * 24 * 3_600_000,
  open: (ports, { lag, pageSize, limited }) =>
    new SalesforceSimulator(ports, {
      lag,
      batchSizeMin: Math.max(1, Math.floor(pageSize / 2)),
      granularityMs: limited ? 1_000 : 1,
    }),
  source: (conditions) => source(conditions, false),
  fields: (n) => ({ Name: formatWriteNumber(n) }),
  writeNumberOf: ({ Name }) => parseWriteNumber(Name),
  granularityMs: ({ limited }) => (limited ? 1_000 : 1),
  rowOf: (record) => record,
  supportsFault: (fault) => RESPONSE_FAULTS.has(fault),
  withoutRows: (body) => ({ totalSize: body['totalSize'], done: true, records: [] }),
  total: { member: 'totalSize' },
  tokenOf: ({ url }) => /\/query\/(\w+-\d+)$/.exec(url.pathname)?.[1] ?? null,
}

/**
 * The same, with the types of its fields. Separate, because every request changes the draws of a seed; a third of the
 * worlds refuse them.
 */
export const typedAccounts: VendorStream = {
  ...salesforceAccounts,
  open: (ports, { lag, pageSize }) =>
    new SalesforceSimulator(ports, {
      lag,
      batchSizeMin: Math.max(1, Math.floor(pageSize / 2)),
      hidesDescriptions: pageSize % 3 === 0,
    }),
  source: (conditions) => source(conditions, true),
  granularityMs: () => 1,
  fields: (n) => ({ Name: formatWriteNumber(n), AnnualRevenue: n % 2 === 0 ? n / 4 : null }),
}

/**
 * A backfill by query jobs. A job shows rows as they were before its results are read, jobs age out, and the count of a job
 * and the end of its results may be wrong.
 */
export const bulkAccounts: VendorStream = {
  ...salesforceAccounts,
  vendor: 'salesforce-bulk',
  readsWindows: true,
  source: ({ pageSize }) => ({
    ...salesforce({ instanceUrl: 'https://vendor.test', accessToken: 'TOKEN', limit: pageSize, bulk: true }).object(
      'Account',
    ),
    guarantee: {
      windowMs: 16_000,
      startsFrom: 'first',
      reports: () => ({ changes: true, deletes: true }),
      cyclesPerRound: 1,
    },
  }),
  fields: (n) => ({ Name: formatWriteNumber(n), AnnualRevenue: n % 2 === 0 ? n / 4 : null }),
  supportsFault: (fault, { url }) =>
    url.pathname.includes('/jobs/')
      ? supportsJobFault(fault, url.pathname)
      : fault !== 'wrong-total' && RESPONSE_FAULTS.has(fault),
  total: { member: 'numberRecordsProcessed' },
  tokenOf: ({ url }) =>
    /\/query\/(\w+-\d+)$/.exec(url.pathname)?.[1] ?? /\/jobs\/query\/(\w+)/.exec(url.pathname)?.[1] ?? null,
}

/** A response to the creation of a job is never one to another: nothing would show it. */
function supportsJobFault(fault: ResponseFault, path: string): boolean {
  if (fault === 'wrong-date') return true
  if (path.endsWith('/results'))
    return ['cached-page', 'end-flag-early', 'end-flag-never', 'page-repeated', 'short-page'].includes(fault)
  return path.endsWith('/query') ? false : fault === 'cached-page' || fault === 'wrong-total'
}
