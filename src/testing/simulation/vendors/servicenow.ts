import { ServicenowSimulator } from '@tidemark/simulators'
import { servicenow } from '../../../sources/servicenow/source.ts'
import type { ResponseFault, VendorConditions, VendorSource, VendorStream } from './vendor-stream.ts'
import { formatWriteNumber, parseWriteNumber } from './write-numbers.ts'

function source({ pageSize }: VendorConditions, metadata: boolean): VendorSource {
  return {
    ...servicenow({
      instanceUrl: 'https://vendor.test',
      user: 'TOKEN',
      password: 'TOKEN',
      limit: pageSize,
      metadata,
    }).table('incident'),
    guarantee: {
      windowMs: 16_000,
      startsFrom: 'first',
      cyclesPerRound: 1,
      reports: () => ({ changes: true, deletes: true }),
    },
  }
}

/** No short pages: they contain rows hidden from the reader, and the count reveals it. */
const RESPONSE_FAULTS: ReadonlySet<ResponseFault> = new Set([
  'cached-page',
  'empty-page',
  'end-flag-early',
  'end-flag-never',
  'page-repeated',
  'partial-answer',
  'wrong-date',
  'wrong-total',
])

/** Whole seconds, ids unrelated to time, rows hidden from the reader, and an audit table that reports deletions. */
export const servicenowIncidents: VendorStream = {
  vendor: 'servicenow',
  name: 'incidents',
  type: 'incident',
  keyField: 'sys_id',
  lagMaxMs: 13_000,
  retentionMs: 30 * 24 * 3_600_000,
  open: (ports, { lag, limited }) =>
    new ServicenowSimulator(ports, { lag, ...(limited && { requestsPerHour: 20_000 }) }),
  source: (conditions) => source(conditions, false),
  fields: (n) => ({ short_description: formatWriteNumber(n) }),
  writeNumberOf: ({ short_description: text }) => parseWriteNumber(text),
  granularityMs: () => 1_000,
  rowOf: (record) => record,
  supportsFault: (fault) => RESPONSE_FAULTS.has(fault),
  withoutRows: (body) => ({ ...body, result: [] }),
  total: { header: 'x-total-count' },
  tokenOf: () => null,
}

/**
 * The same, with the types of its columns. Separate, because every request changes the draws of a seed; a third of the
 * worlds refuse them.
 */
export const typedIncidents: VendorStream = {
  ...servicenowIncidents,
  open: (ports, { lag, pageSize }) =>
    new ServicenowSimulator(ports, { lag, ...(pageSize % 3 === 0 && { refused: ['sys_dictionary'] }) }),
  source: (conditions) => source(conditions, true),
  fields: (n) => ({ short_description: formatWriteNumber(n), state: n % 3 === 0 ? '' : String(n % 3) }),
}
