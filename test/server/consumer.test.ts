import { openHarness } from '../stores/sqlite-harness.ts'
import { describeConsumers } from './consumer-cases.ts'

describeConsumers('SQLite', openHarness)
