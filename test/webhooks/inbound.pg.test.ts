import { openHarness } from '../stores/postgres-harness.ts'
import { describeInbound } from './inbound-cases.ts'

describeInbound('postgres', openHarness)
