import type { TestProject } from 'vitest/node'
import { INSTALL_HINT, startPostgres, type PostgresServer } from './postgres-server.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** URL of a real server, as superuser; empty when there is none, and then its tests are skipped. */
    postgresUrl: string
  }
}

let server: PostgresServer | null = null
let missing: string | null = null

/** One private server for the whole run, unless TIDEMARK_TEST_POSTGRES_URL names another. */
export async function setup(project: TestProject): Promise<void> {
  const given = process.env['TIDEMARK_TEST_POSTGRES_URL']
  if (given !== undefined && given !== '') return project.provide('postgresUrl', given)
  try {
    server = await startPostgres()
  } catch (error) {
    if (process.env['CI'] === 'true')
      throw new Error(`The tests need a PostgreSQL server. ${INSTALL_HINT}`, { cause: error })
    missing = error instanceof Error ? error.message : String(error)
  }
  project.provide('postgresUrl', server?.url ?? '')
}

export async function teardown(): Promise<void> {
  await server?.stop()
  if (missing !== null)
    console.warn(`\nNOT TESTED: everything on PostgreSQL (*.pg.test.ts). ${missing}\n${INSTALL_HINT}`)
}
