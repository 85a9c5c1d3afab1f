import { HUBSPOT_DOCUMENTED_LIMITS, HubspotSimulator } from '@tidemark/simulators'
import { hubspot } from '../../../sources/hubspot/source.ts'
import type { VendorStream } from './vendor-stream.ts'
import { formatWriteNumber, parseWriteNumber } from './write-numbers.ts'

/** A search index that lags, sorts by one field and shuffles ties; archived records have a list of their own. */
const stream = (type: 'contacts' | 'companies', property: string): VendorStream => ({
  vendor: 'hubspot',
  name: type,
  type,
  keyField: 'id',
  lagMaxMs: 9_000,
  hasReplicas: true,
  readsWindows: true,
  retentionMs: 90 * 24 * 3_600_000,
  open: (ports, { lag, limited }) => new HubspotSimulator(ports, { lag, ...(limited && HUBSPOT_DOCUMENTED_LIMITS) }),
  source: ({ pageSize }) => ({
    // Every cycle lists the archive, so deletions can be expected of each.
    ...hubspot({ accessToken: 'TOKEN', baseUrl: 'https://vendor.test', limit: pageSize, archivedEveryMs: 0 })[type],
    guarantee: {
      windowMs: 10_000,
      startsFrom: { lookBackMs: 5 * 60_000 },
      cyclesPerRound: 1,
      reports: () => ({ changes: true, deletes: true }),
    },
  }),
  fields: (n) => ({ [property]: formatWriteNumber(n) }),
  writeNumberOf: ({ properties }) => parseWriteNumber((properties as Record<string, unknown>)[property]),
  granularityMs: () => 1,
  rowOf: (record) => record,
  // A list ends where `paging` is absent; a search does not depend on it.
  supportsFault: (fault, { url }) =>
    fault === 'wrong-date' ||
    fault === 'end-flag-never' ||
    fault === 'cached-page' ||
    (url.pathname.endsWith('/search') ? SEARCH_FAULTS.has(fault) : fault === 'short-page' || fault === 'page-repeated'),
  withoutRows: (body) => ({ ...body, results: [] }),
  total: { member: 'total' },
  tokenOf: ({ url }) => url.searchParams.get('after'),
})

const SEARCH_FAULTS: ReadonlySet<string> = new Set([
  'end-flag-early',
  'empty-page',
  'wrong-total',
  'page-repeated',
  'unsorted',
])

/** Contacts use a different property name for the modification time. */
export const hubspotContacts = stream('contacts', 'firstname')
export const hubspotCompanies = stream('companies', 'name')

/** An object type that the account defines: its properties are read from its schema in every cycle. */
export const hubspotCars: VendorStream = {
  ...stream('companies', 'plate'),
  vendor: 'hubspot-objects',
  name: 'custom object',
  type: 'p1_cars',
  open: (ports, { lag, limited }) =>
    new HubspotSimulator(ports, { types: { p1_cars: ['plate'] }, lag, ...(limited && HUBSPOT_DOCUMENTED_LIMITS) }),
  source: ({ pageSize }) => ({
    ...hubspot({ accessToken: 'TOKEN', baseUrl: 'https://vendor.test', limit: pageSize, archivedEveryMs: 0 }).object(
      'p1_cars',
    ),
    guarantee: {
      windowMs: 10_000,
      startsFrom: { lookBackMs: 5 * 60_000 },
      cyclesPerRound: 1,
      reports: () => ({ changes: true, deletes: true }),
    },
  }),
  supportsFault: (fault, request) =>
    request.url.pathname.includes('/schemas/')
      ? fault === 'wrong-date' || fault === 'cached-page'
      : stream('companies', 'plate').supportsFault(fault, request),
}

/** Pairs of objects, which have neither a time nor an order of their own. */
export const hubspotAssociations: VendorStream = {
  ...stream('contacts', 'firstname'),
  vendor: 'hubspot-objects',
  name: 'associations',
  type: 'contacts_companies',
  open: (ports, { lag, limited }) =>
    new HubspotSimulator(ports, { lag, associationsMax: 2, ...(limited && HUBSPOT_DOCUMENTED_LIMITS) }),
  source: ({ pageSize }) =>
    hubspot({ accessToken: 'TOKEN', baseUrl: 'https://vendor.test', limit: pageSize }).associations(
      'contacts',
      'companies',
    ),
  prepare: (simulator) => {
    for (let n = 0; n < CONTACTS; n++) simulator.create('contacts')
  },
  // A new company for each, so that no pair of ids is used twice.
  parentFields: (simulator, chance) => ({
    fromId: chance.pick(simulator.records.current('contacts')).id,
    toId: simulator.create('companies'),
  }),
  fields: (n) => ({ label: formatWriteNumber(n) }),
  writeNumberOf: ({ associationTypes }) => {
    const [, labelled] = associationTypes as { label?: string }[]
    return parseWriteNumber(labelled?.label ?? '')
  },
  supportsFault: (fault, { url }) =>
    fault === 'wrong-date' ||
    fault === 'cached-page' ||
    fault === 'page-repeated' ||
    (url.pathname.endsWith('/batch/read')
      ? fault === 'empty-page'
      : fault === 'end-flag-never' || fault === 'short-page'),
}

const CONTACTS = 12
