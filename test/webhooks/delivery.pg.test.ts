import { openHarness } from '../stores/postgres-harness.ts'
import { describeDelivery } from './delivery-cases.ts'

describeDelivery('postgres', openHarness)
