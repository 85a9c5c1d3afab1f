import { atomicityCases } from './atomicity.ts'
import { beginCases } from './begin.ts'
import { commitCases } from './commit.ts'
import { consumerCases } from './consumers.ts'
import { feedCases } from './feed.ts'
import type { StoreCase } from './harness.ts'
import { jsonCases } from './json.ts'
import { landingCases } from './landing.ts'
import { leaseCases } from './leases.ts'
import { pacerCases } from './pacers.ts'
import { registryCases } from './registry.ts'
import { servedCases } from './served.ts'
import { standingCases } from './standings.ts'
import { sweepCases } from './sweep.ts'
import { tenantCases } from './tenants.ts'
import { trailCases } from './trail.ts'
import { viewCases } from './views.ts'
import { webhookCases } from './webhooks.ts'

/** The promise of a store, in the order in which one would build it. */
export const storeCases: readonly StoreCase[] = [
  ...leaseCases,
  ...beginCases,
  ...commitCases,
  ...landingCases,
  ...sweepCases,
  ...feedCases,
  ...atomicityCases,
  ...jsonCases,
  ...viewCases,
  ...tenantCases,
  ...registryCases,
  ...standingCases,
  ...pacerCases,
  ...servedCases,
  ...trailCases,
  ...webhookCases,
  ...consumerCases,
]
