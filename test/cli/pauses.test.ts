import { describe } from 'vitest'
import { describeFirstPause, describePauses } from './pause-cases.ts'

describe('on SQLite', () => {
  describePauses(async () => ({}))
  describeFirstPause()
})
