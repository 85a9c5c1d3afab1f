import type { TransactionPlan, RoleOf } from '../sql/port.ts'
import { API_KEY_PLANS } from './api-keys.ts'
import { AUDIT_PLANS } from './audit.ts'
import { COLUMN_PLANS } from './columns.ts'
import { CONNECT_SESSION_PLANS } from './connect-sessions.ts'
import { CONNECTION_PLANS } from './connections.ts'
import { CONSUMER_PLANS } from './consumers.ts'
import { DATA_KEY_PLANS } from './data-keys.ts'
import { DESTINATION_PLANS } from './destinations.ts'
import { INBOUND_PLANS } from './inbound.ts'
import { LEASE_PLANS } from './leases.ts'
import { PACING_PLANS } from './pacing.ts'
import { PARTITION_PLANS } from './partitions.ts'
import { QUARANTINE_PLANS } from './quarantine.ts'
import { SEQUENCE_PLANS } from './sequences.ts'
import { SYNC_PLANS } from './syncs.ts'
import { TENANT_PLANS } from './tenants.ts'
import { VERIFICATION_PLANS } from './verifications.ts'
import { WEBHOOK_PLANS } from './webhooks.ts'

/** The store methods that are implemented once, over the SQL port. */
export const ROLE_PLANS = {
  ...API_KEY_PLANS,
  ...AUDIT_PLANS,
  ...COLUMN_PLANS,
  ...CONNECT_SESSION_PLANS,
  ...CONNECTION_PLANS,
  ...CONSUMER_PLANS,
  ...DATA_KEY_PLANS,
  ...DESTINATION_PLANS,
  ...INBOUND_PLANS,
  ...LEASE_PLANS,
  ...PACING_PLANS,
  ...PARTITION_PLANS,
  ...QUARANTINE_PLANS,
  ...SEQUENCE_PLANS,
  ...SYNC_PLANS,
  ...TENANT_PLANS,
  ...VERIFICATION_PLANS,
  ...WEBHOOK_PLANS,
}

/** The name of a store method that `ROLE_PLANS` implements. */
export type RoleMethod = keyof typeof ROLE_PLANS

/** The store methods that `ROLE_PLANS` implements. */
export type RoleMethods = RoleOf<typeof ROLE_PLANS>

/** Whether a store method is implemented by `ROLE_PLANS`. */
export function isRoleMethod(method: string): method is RoleMethod {
  return Object.hasOwn(ROLE_PLANS, method)
}

/** Binds the role plans to a store's way of running a plan. */
export function bindPlans(
  run: <Args extends readonly unknown[], T>(plan: TransactionPlan<Args, T>, args: Args) => Promise<T>,
): RoleMethods {
  const bind =
    (plan: TransactionPlan<readonly never[], unknown>) =>
    (...args: readonly never[]) =>
      run(plan, args)
  return Object.fromEntries(
    Object.entries(ROLE_PLANS).map(([method, plan]) => [
      method,
      bind(plan as TransactionPlan<readonly never[], unknown>),
    ]),
  ) as unknown as RoleMethods
}
