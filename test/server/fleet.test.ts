import { openHarness } from '../stores/sqlite-harness.ts'
import { describeFleet } from './fleet-cases.ts'

describeFleet('sqlite', openHarness)
