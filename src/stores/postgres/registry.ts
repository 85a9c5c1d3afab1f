import * as steps from '../kit/registry.ts'
import { bindSteps } from './sql.ts'

export { writeAudit } from './audit.ts'

/** Steps of kit/registry.ts that a commit takes too. */
export const heldEntry = bindSteps(steps.heldEntry)
export const lockTenant = bindSteps(steps.lockTenant)
