import { SyncError } from '../../contract/index.ts'
import type { Connection, Transaction } from './connection.ts'
import { isLogMigrationPending, migrateLog, type MigrationOptions } from './migrate-log.ts'
import { DROP_OLD_TABLES } from './migrations/0017-typed-tables.ts'
import { MIGRATIONS, SCHEMA_VERSION, SCHEMA_VERSION_MIN, SERVER_VERSION_MIN } from './schema.ts'

/**
 * Creates or upgrades the tables. It is resumable: the version is set first, so that an older program leaves the store
 * alone, and then records are moved step by step. A replica gets its tables from its primary only.
 */
export async function migrate(connection: Connection, options: MigrationOptions = {}): Promise<{ isReplica: boolean }> {
  const {
    version: found,
    isReplica,
    isMoving,
  } = await connection.read('', async (transaction) => ({
    version: await readSchemaVersion(transaction),
    isReplica: await isInRecovery(transaction),
    isMoving: await isLogMigrationPending(transaction),
  }))
  if (found === SCHEMA_VERSION && !isMoving) return { isReplica }
  if (isReplica) {
    const version =
      found === SCHEMA_VERSION
        ? 'its records are still being moved to their tables'
        : `its schema tidemark has version ${found}, but this version of tidemark needs ${SCHEMA_VERSION}`
    const what = found === null ? 'the schema tidemark has not been replicated to it yet' : version
    throw new SyncError(
      'STORE_READONLY',
      `The server is a replica, and ${what}. Open the primary once with this version of tidemark; the replica receives its tables from there.`,
    )
  }
  const isNew = found !== SCHEMA_VERSION && (await upgradeSchema(connection))
  if (!isNew) await migrateLog(connection, options)
  return { isReplica }
}

/** Returns true when the schema was new, so that no records have to be moved. */
function upgradeSchema(connection: Connection): Promise<boolean> {
  return connection.write('', async (transaction) => {
    // Other processes that open the store wait here, and then find it done.
    await transaction.run(`select pg_advisory_xact_lock(hashtext('tidemark.migrate'))`)
    const version = await readSchemaVersion(transaction)
    if (version === SCHEMA_VERSION) return false
    await checkServer(transaction)
    if (version === null) await createSchema(transaction)
    for (const migration of MIGRATIONS.slice(version ?? 0)) await transaction.run(migration)
    if (version === null) await transaction.run(DROP_OLD_TABLES)
    await transaction.run(
      `create or replace function tidemark.schema_version() returns integer language sql immutable as 'select ${SCHEMA_VERSION}'`,
    )
    return version === null
  })
}

async function isInRecovery(transaction: Transaction): Promise<boolean> {
  return (await transaction.one<{ is: boolean }>('select pg_is_in_recovery() as is')).is
}

/**
 * Returns null when the tables were never created. The version is stored as a function: a table of versions would be
 * one without a tenant.
 */
async function readSchemaVersion(transaction: Transaction): Promise<number | null> {
  // Read from the catalog tables, because to_regprocedure may answer from the session's cache: after waiting for the
  // lock it would still miss a function that another process just created.
  const found = await transaction.get(
    "select from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = 'tidemark' and p.proname = 'schema_version' and p.pronargs = 0",
  )
  if (found === undefined) return null
  const { version } = await transaction.one<{ version: number }>('select tidemark.schema_version() as version')
  if (version > SCHEMA_VERSION)
    throw new SyncError(
      'STORE_NEWER',
      `The schema tidemark has version ${version}; this version of tidemark supports up to ${SCHEMA_VERSION}.`,
    )
  if (version < SCHEMA_VERSION_MIN) {
    throw new SyncError(
      'STORE_OLDER',
      `The schema tidemark has version ${version}; this version of tidemark reads ${SCHEMA_VERSION_MIN} and later.`,
    )
  }
  return version
}

async function checkServer(transaction: Transaction): Promise<void> {
  const { version, encoding } = await transaction.one<{ version: number; encoding: string }>(
    "select current_setting('server_version_num')::integer as version, current_setting('server_encoding') as encoding",
  )
  if (version < SERVER_VERSION_MIN * 10_000) {
    throw new SyncError(
      'STORE_FOREIGN',
      `The server is PostgreSQL ${Math.floor(version / 10_000)}; tidemark needs ${SERVER_VERSION_MIN} or later.`,
    )
  }
  if (encoding !== 'UTF8')
    throw new SyncError('STORE_FOREIGN', `The database is encoded in ${encoding}; tidemark needs UTF8.`)
}

async function createSchema(transaction: Transaction): Promise<void> {
  const schema = await transaction.get("select from pg_namespace where nspname = 'tidemark'")
  // An existing empty schema is accepted; creating one needs a right on the whole database.
  if (schema === undefined) return void (await transaction.run('create schema tidemark'))
  const foreign = await transaction.get<{ name: string }>(
    "select relname as name from pg_class where relnamespace = 'tidemark'::regnamespace limit 1",
  )
  if (foreign !== undefined)
    throw new SyncError(
      'STORE_FOREIGN',
      `The schema tidemark already has a relation ${foreign.name}, but no schema version.`,
    )
}
