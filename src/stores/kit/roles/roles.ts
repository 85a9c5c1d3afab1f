import type { Plan, RoleOf } from '../sql/port.ts'
import { API_KEYS } from './api-keys.ts'
import { AUDIT } from './audit.ts'
import { CONSUMERS } from './consumers.ts'
import { DATA_KEYS } from './data-keys.ts'
import { INBOUND } from './inbound.ts'
import { LEASES } from './leases.ts'
import { PACING } from './pacing.ts'
import { QUARANTINE } from './quarantine.ts'
import { SEQUENCES } from './sequences.ts'
import { SYNCS } from './syncs.ts'
import { TENANTS } from './tenants.ts'
import { WEBHOOKS } from './webhooks.ts'

/** The methods of a store that are written once, over the SQL port. */
export const ROLES = { ...API_KEYS, ...AUDIT, ...CONSUMERS, ...DATA_KEYS, ...INBOUND, ...LEASES, ...PACING, ...QUARANTINE, ...SEQUENCES, ...SYNCS, ...TENANTS, ...WEBHOOKS }

export type RoleMethod = keyof typeof ROLES

export type RoleMethods = RoleOf<typeof ROLES>

export function isRoleMethod(method: string): method is RoleMethod {
  return Object.hasOwn(ROLES, method)
}

/** The roles of a store, given how it runs a plan. */
export function bindPlans(run: <Args extends readonly unknown[], T>(plan: Plan<Args, T>, args: Args) => Promise<T>): RoleMethods {
  const bind = (plan: Plan<readonly never[], unknown>) => (...args: readonly never[]) => run(plan, args)
  return Object.fromEntries(Object.entries(ROLES).map(([method, plan]) => [method, bind(plan as Plan<readonly never[], unknown>)])) as unknown as RoleMethods
}
