import { checkSealingKey as checkSteps } from '../kit/roles/data-keys.ts'
import type { Session } from './connection.ts'
import { performSteps, sqlOf } from './sql.ts'

/** See kit/roles/data-keys.ts; inside a transaction. */
export function checkSealingKey(session: Session, text: string | null, used?: string | null): void {
  performSteps(session, checkSteps(sqlOf(session), text, used))
}
