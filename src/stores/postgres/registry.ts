import * as steps from '../kit/registry.ts'
import { bindSteps } from './sql.ts'

export { writeAudit } from './audit.ts'

/** Steps of kit/registry.ts that a commit also uses. */
export const findLeasedEntry = bindSteps(steps.findLeasedEntry)
export const lockTenant = bindSteps(steps.lockTenant)
