import { AirtableSimulator } from '@tidemark/simulators'
import { airtable } from '../../../sources/airtable/source.ts'
import type { VendorStream } from './vendor-stream.ts'
import { formatWriteNumber, parseWriteNumber } from './write-numbers.ts'

/** Iterators that time out, no timestamps, and half a minute of refusal after exceeding the rate limit. */
export const airtableTasks: VendorStream = {
  vendor: 'airtable',
  name: 'tasks',
  type: 'Tasks',
  keyField: 'id',
  lagMaxMs: 0,
  open: (ports, { pageSize, limited }) =>
    new AirtableSimulator(ports, { baseId: 'appSimulated00001', pageSizeMax: pageSize, limited }),
  source: () =>
    airtable({ baseId: 'appSimulated00001', token: 'TOKEN', baseUrl: 'https://vendor.test/v0' }).table('Tasks'),
  fields: (n) => ({ Name: formatWriteNumber(n) }),
  writeNumberOf: ({ fields }) => parseWriteNumber((fields as { Name?: unknown }).Name),
  granularityMs: () => 1,
  rowOf: (record) => record,
  // Records have no modification time. A reader cannot distinguish an older page from a newer one, so neither repeated
  // nor cached pages are simulated: a row would go back until the next cycle. Rows that such a page omits are looked up
  // before they are swept.
  supportsFault: (fault) => fault === 'wrong-date' || fault === 'end-flag-never' || fault === 'short-page',
  tokenOf: ({ url }) => url.searchParams.get('offset'),
}

/** The same, followed by the payloads of a webhook, which are kept for a week. */
export const airtableTracked: VendorStream = {
  ...airtableTasks,
  name: 'tracked tasks',
  retentionMs: 7 * 24 * 3_600_000,
  source: () => ({
    ...airtable({ baseId: 'appSimulated00001', token: 'TOKEN', baseUrl: 'https://vendor.test/v0' }).tracked(
      'tbl00000000000000',
      'achSimulated00001',
    ),
    guarantee: {
      windowMs: 1_000,
      startsFrom: 'anchor',
      reports: () => ({ changes: true, deletes: true }),
      cyclesPerRound: 1,
    },
  }),
  tokenOf: ({ url }) => url.searchParams.get('offset') ?? url.searchParams.get('cursor'),
}
