import { join } from 'node:path'
import { describeFleet } from './fleet-cases.ts'

describeFleet('SQLite file', async (folder) => `sqlite:${join(folder, 'fleet.db')}`)
