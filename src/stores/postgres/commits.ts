import * as steps from '../kit/commits.ts'
import type { Transaction } from './connection.ts'
import { bindPipelinedSteps } from './sql.ts'

export { listLoggedRanges, type CommitFacts, type LoggedRange } from '../kit/commits.ts'

export const writeCommits = bindPipelinedSteps(steps.writeCommits)

/** Returns the time of the commit that a sequence belongs to; null when it was compacted, or never existed. */
export async function findCommittedAt(transaction: Transaction, sequence: number): Promise<number | null> {
  const found = await transaction.get<{ last: number; at: number }>(
    'select last_sequence as last, committed_at as at from tidemark.commits where tenant_id = $1 and first_sequence <= $2 order by first_sequence desc limit 1',
    transaction.tenant,
    sequence,
  )
  return found === undefined || found.last < sequence ? null : found.at
}
