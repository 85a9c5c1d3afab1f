import { openHarness } from '../stores/sqlite-harness.ts'
import { changesCases } from './changes-cases.ts'

changesCases(openHarness)
