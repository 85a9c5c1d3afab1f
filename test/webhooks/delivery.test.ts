import { openHarness } from '../stores/sqlite-harness.ts'
import { describeDelivery } from './delivery-cases.ts'

describeDelivery('sqlite', openHarness)
