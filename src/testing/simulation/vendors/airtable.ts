import { airtable } from '../../../sources/airtable/source.ts'
import { AirtableSimulator } from '../../simulators/airtable/simulator.ts'
import type { VendorStream } from './vendor.ts'
import { numbered, writeIn } from './writes.ts'

/** Iterators that time out, no stamps, and half a minute of refusal after a request too many. */
export const airtableTasks: VendorStream = {
  vendor: 'airtable', name: 'tasks', type: 'Tasks', keyField: 'id', lagMaxMs: 0,
  open: (ports, { pageSize, limited }) => new AirtableSimulator(ports, { baseId: 'appSimulated00001', pageSizeMax: pageSize, limited }),
  source: () => airtable({ baseId: 'appSimulated00001', token: 'TOKEN', baseUrl: 'https://vendor.test/v0' }).table('Tasks'),
  fields: (n) => ({ Name: numbered(n) }),
  writeOf: ({ fields }) => writeIn((fields as { Name?: unknown }).Name),
  rowOf: (record) => record,
  suffers: (fault) => fault === 'end-flag-never' || fault === 'short-page',
  tokenOf: ({ url }) => url.searchParams.get('offset'),
}
