import { describe, inject, test } from 'vitest'
import { CASES_WITH_POSTGRES } from './case-names.ts'
import { runCase } from './run-case.ts'

const server = inject('postgresUrl')

describe.skipIf(server === '')('bench on PostgreSQL', () => {
  test.each(CASES_WITH_POSTGRES)('bench --only %s completes and prints its results', async (name) => {
    await runCase(name, '--postgres', server)
  })
})
