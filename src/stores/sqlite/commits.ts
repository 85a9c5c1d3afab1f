import * as steps from '../kit/commits.ts'
import { bindSteps } from './sql.ts'

export { listLoggedRanges, type CommitFacts } from '../kit/commits.ts'

export const writeCommits = bindSteps(steps.writeCommits)
