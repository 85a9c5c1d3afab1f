import { checkSealingKey as checkSteps } from '../kit/roles/data-keys.ts'
import { bindSteps } from './sql.ts'

/** See kit/roles/data-keys.ts. Legal inside a transaction. */
export const checkSealingKey = bindSteps(checkSteps)
