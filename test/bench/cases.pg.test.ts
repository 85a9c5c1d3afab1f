import { describe, inject, test } from 'vitest'
import { CASES_WITH_POSTGRES } from './case-names.ts'
import { runCase } from './run-case.ts'

const server = inject('postgresUrl')

describe.skipIf(server === '')('bench on PostgreSQL', () => {
  test.each(CASES_WITH_POSTGRES)('bench --only %s runs to its end and has its figures', async (name) => {
    await runCase(name, '--postgres', server)
  })
})
