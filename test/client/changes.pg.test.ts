import { openHarness } from '../stores/postgres-harness.ts'
import { changesCases } from './changes-cases.ts'

changesCases(openHarness)
