import { openHarness } from '../stores/sqlite-harness.ts'
import { describeNoGap } from './no-gap-cases.ts'

describeNoGap('SQLite', openHarness)
