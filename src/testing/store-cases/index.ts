import { atomicityCases } from './atomicity.ts'
import { backfillCases } from './backfills.ts'
import { beginCases } from './begin.ts'
import { columnRuleCases } from './column-rules.ts'
import { commitCases } from './commit.ts'
import { connectSessionCases } from './connect-sessions.ts'
import { connectionCases } from './connections.ts'
import { cycleTotalsCases } from './cycle-totals.ts'
import { consumerCases } from './consumers.ts'
import { contestCases } from './contests.ts'
import { feedCases } from './feed.ts'
import { destinationCases } from './destinations.ts'
import type { StoreCase } from './harness.ts'
import { jsonCases } from './json.ts'
import { landingCases } from './landing.ts'
import { leaseCases } from './leases.ts'
import { pacerCases } from './pacers.ts'
import { partitionCases } from './partitions.ts'
import { pauseCases } from './pauses.ts'
import { registryCases } from './registry.ts'
import { rowSearchCases } from './row-search.ts'
import { serverSupportCases } from './server-support.ts'
import { softDeleteCases } from './soft-deletes.ts'
import { syncStatusCases } from './sync-status.ts'
import { sweepCases } from './sweep.ts'
import { tenantCases } from './tenants.ts'
import { auditChainCases } from './audit-chain.ts'
import { tableCases } from './tables.ts'
import { verificationCases } from './verifications.ts'
import { webhookCases } from './webhooks.ts'

/** The contract of a store, in the order in which one would implement it. */
export const storeCases: readonly StoreCase[] = [
  ...leaseCases,
  ...beginCases,
  ...commitCases,
  ...landingCases,
  ...sweepCases,
  ...contestCases,
  ...feedCases,
  ...atomicityCases,
  ...partitionCases,
  ...jsonCases,
  ...tableCases,
  ...rowSearchCases,
  ...softDeleteCases,
  ...tenantCases,
  ...registryCases,
  ...backfillCases,
  ...syncStatusCases,
  ...cycleTotalsCases,
  ...pacerCases,
  ...pauseCases,
  ...serverSupportCases,
  ...auditChainCases,
  ...webhookCases,
  ...consumerCases,
  ...destinationCases,
  ...connectionCases,
  ...connectSessionCases,
  ...verificationCases,
  ...columnRuleCases,
]
