import { servicenow } from '../../../sources/servicenow/source.ts'
import { ServicenowSimulator } from '../../simulators/servicenow/simulator.ts'
import type { VendorStream } from './vendor.ts'
import { numbered, writeIn } from './writes.ts'

/** Whole seconds, ids that follow no time, rows the reader may not see, and an audit that tells of deletions. */
export const servicenowIncidents: VendorStream = {
  vendor: 'servicenow', name: 'incidents', type: 'incident', keyField: 'sys_id', lagMaxMs: 13_000,
  open: (ports, { lag, limited }) => new ServicenowSimulator(ports, { lag, ...(limited && { requestsPerHour: 20_000 }) }),
  source: ({ pageSize }) => ({
    ...servicenow({ instanceUrl: 'https://vendor.test', user: 'TOKEN', password: 'TOKEN', limit: pageSize }).table('incident'),
    promise: {
      windowMs: 16_000, begins: 'first', cyclesPerRound: 2,
      tells: ({ phase }: { phase: string }) => ({ changes: phase === 'deletes', deletes: phase === 'delta' }),
    },
  }),
  fields: (n) => ({ short_description: numbered(n) }),
  writeOf: ({ short_description: text }) => writeIn(text),
  rowOf: (record) => record,
  // Short pages are those of rows the reader may not see, and the count tells.
  suffers: (fault) => fault !== 'short-page',
  tokenOf: () => null,
}
