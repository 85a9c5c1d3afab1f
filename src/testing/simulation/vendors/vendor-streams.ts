import { airtableTasks, airtableTracked } from './airtable.ts'
import { githubIssues, githubRepositories, githubRepositoryIssues } from './github.ts'
import { hubspotAssociations, hubspotCars, hubspotCompanies, hubspotContacts } from './hubspot.ts'
import { linearIssues, linearTracked } from './linear.ts'
import { odataOrders, odataTracked } from './odata.ts'
import { restContacts, restCustomers } from './rest.ts'
import { bulkAccounts, salesforceAccounts } from './salesforce.ts'
import { servicenowIncidents } from './servicenow.ts'
import { stripeCoupons, stripeCustomers, stripeInvoices } from './stripe.ts'
import type { VendorStream } from './vendor-stream.ts'

export const VENDOR_STREAMS: readonly VendorStream[] = [
  salesforceAccounts,
  stripeCustomers,
  stripeInvoices,
  hubspotContacts,
  hubspotCompanies,
  servicenowIncidents,
  githubRepositories,
  githubIssues,
  linearIssues,
  airtableTasks,
  restContacts,
  restCustomers,
]

/**
 * Only where their vendor is named: a seed draws its stream by the number of those above, and must reproduce the same
 * world.
 */
export const OPT_IN_STREAMS: readonly VendorStream[] = [
  odataOrders,
  odataTracked,
  bulkAccounts,
  hubspotCars,
  hubspotAssociations,
  stripeCoupons,
  linearTracked,
  githubRepositoryIssues,
  airtableTracked,
]
