import { openHarness } from '../stores/sqlite-harness.ts'
import { describeInbound } from './inbound-cases.ts'

describeInbound('sqlite', openHarness)
