import { bearer } from '../../../sources/kit/auth.ts'
import { odata, type ODataSource } from '../../../sources/odata/source.ts'
import { ODATA_URL, OdataService, ORDERS } from './odata-service.ts'
import type { VendorStream } from './vendor-stream.ts'
import { formatWriteNumber, parseWriteNumber } from './write-numbers.ts'

const service = (): ODataSource => odata({ url: ODATA_URL, auth: bearer('TOKEN') })

const stream: Omit<VendorStream, 'name' | 'open' | 'source' | 'granularityMs'> = {
  vendor: 'odata',
  type: ORDERS,
  keyField: 'Id',
  lagMaxMs: 14_000,
  fields: (n) => ({ Name: formatWriteNumber(n) }),
  writeNumberOf: ({ Name }) => parseWriteNumber(Name),
  rowOf: (record) => record,
  supportsFault: (fault, { url }) =>
    fault === 'wrong-date' || (url.pathname.endsWith(`/${ORDERS}`) && RESPONSE_FAULTS.has(fault)),
  withoutRows: (body) => ('d' in body ? { d: { results: [] } } : { ...body, value: [], '@odata.nextLink': undefined }),
  tokenOf: ({ url }) => url.searchParams.get('$skiptoken'),
}

const RESPONSE_FAULTS: ReadonlySet<string> = new Set([
  'end-flag-never',
  'end-flag-early',
  'short-page',
  'empty-page',
  'page-repeated',
  'cached-page',
])

/** By key, and by a cursor with its key; deleted rows stay with a flag. Version 2 where the vendor limits requests. */
export const odataOrders: VendorStream = {
  ...stream,
  name: 'orders',
  open: (ports, { lag, limited, pageSize }) =>
    new OdataService(ports, {
      lag,
      version: limited ? 2 : 4,
      keepsDeleted: true,
      granularityMs: limited ? 1_000 : 1,
      pageSizeMax: pageSize,
    }),
  source: ({ pageSize }) => ({
    ...service().entitySet(ORDERS, { cursor: 'At', deleted: 'Gone', lagMs: 15_000, pageSize }),
    guarantee: {
      windowMs: 17_000,
      startsFrom: 'first',
      cyclesPerRound: 1,
      reports: () => ({ changes: true, deletes: true }),
    },
  }),
  granularityMs: ({ limited }) => (limited ? 1_000 : 1),
}

/** By the delta links of the service. */
export const odataTracked: VendorStream = {
  ...stream,
  name: 'tracked',
  open: (ports, { lag, pageSize }) =>
    new OdataService(ports, { lag, version: 4, keepsDeleted: false, granularityMs: 1, pageSizeMax: pageSize }),
  source: ({ pageSize }) => ({
    ...service().tracked(ORDERS, { pageSize }),
    guarantee: {
      windowMs: 15_000,
      startsFrom: 'first',
      cyclesPerRound: 1,
      reports: () => ({ changes: true, deletes: true }),
    },
  }),
  granularityMs: () => 1,
  // An expired delta link loses the history, which a delta alone cannot repair.
  tokenOf: () => null,
}
