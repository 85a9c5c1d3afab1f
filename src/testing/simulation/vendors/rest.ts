import { bearer, rest } from '../../../sources/rest/source.ts'
import { hubspotContacts } from './hubspot.ts'
import { stripeCustomers } from './stripe.ts'
import type { VendorStream } from './vendor-stream.ts'

/**
 * HubSpot's list, declared: pages by a token. Without `lookup`, a first page that is answered with a later page of an
 * earlier listing cannot be recognized.
 */
export const restContacts: VendorStream = {
  ...hubspotContacts,
  vendor: 'rest',
  repeats: 'page-before',
  source: ({ pageSize }) =>
    rest({
      baseUrl: 'https://vendor.test',
      auth: bearer('TOKEN'),
      streams: [
        {
          name: 'contacts',
          path: '/crm/v3/objects/contacts',
          records: 'results',
          key: 'id',
          updatedAt: 'updatedAt',
          page: {
            kind: 'token',
            parameter: 'after',
            next: 'paging.next.after',
            size: { parameter: 'limit', value: pageSize },
          },
        },
      ],
    }).contacts,
}

/** Stripe's list, declared: pages by the last record of the previous page. */
export const restCustomers: VendorStream = {
  ...stripeCustomers,
  vendor: 'rest',
  source: ({ pageSize }) =>
    rest({
      baseUrl: 'https://vendor.test/v1',
      auth: bearer('TOKEN'),
      streams: [
        {
          name: 'customers',
          path: '/customers',
          records: 'data',
          key: 'id',
          page: {
            kind: 'token',
            parameter: 'starting_after',
            next: { last: 'id' },
            more: 'has_more',
            size: { parameter: 'limit', value: pageSize },
          },
        },
      ],
    }).customers,
}
