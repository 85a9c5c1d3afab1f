import { hubspot } from '../../../sources/hubspot/source.ts'
import { DOCUMENTED_LIMITS, HubspotSimulator } from '../../simulators/hubspot/simulator.ts'
import type { VendorStream } from './vendor.ts'
import { numbered, writeIn } from './writes.ts'

/** A search that lags, sorts by one field and shuffles its ties; what was archived stands in a list of its own. */
const stream = (type: 'contacts' | 'companies', property: string): VendorStream => ({
  vendor: 'hubspot', name: type, type, keyField: 'id', lagMaxMs: 9_000,
  open: (ports, { lag, limited }) => new HubspotSimulator(ports, { lag, ...(limited && DOCUMENTED_LIMITS) }),
  source: ({ pageSize }) => ({
    ...hubspot({ accessToken: 'TOKEN', baseUrl: 'https://vendor.test', limit: pageSize })[type],
    promise: {
      windowMs: 10_000, begins: { lookBackMs: 5 * 60_000 }, cyclesPerRound: 2,
      tells: ({ phase }: { phase: string }) => ({ changes: phase === 'deletes', deletes: phase === 'delta' }),
    },
  }),
  fields: (n) => ({ [property]: numbered(n) }),
  writeOf: ({ properties }) => writeIn((properties as Record<string, unknown>)[property]),
  rowOf: (record) => record,
  // A list ends where there is no `paging`; a search is not asked for it.
  suffers: (fault, { url }) => fault === 'end-flag-never' || fault === (url.pathname.endsWith('/search') ? 'end-flag-early' : 'short-page'),
  tokenOf: ({ url }) => url.searchParams.get('after'),
})

/** Contacts spell their time of change in their own way. */
export const hubspotContacts = stream('contacts', 'firstname')
export const hubspotCompanies = stream('companies', 'name')
