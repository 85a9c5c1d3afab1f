import { checkSealingKey as checkSteps } from '../kit/roles/data-keys.ts'
import type { Transaction } from './connection.ts'
import { performSteps, sqlOf } from './sql.ts'

/** See kit/roles/data-keys.ts. Legal once the tenant is locked. */
export function checkSealingKey(transaction: Transaction, text: string | null, used?: string | null): Promise<void> {
  return performSteps(transaction, checkSteps(sqlOf(transaction.tenant), text, used))
}
