import type { DataKeyStore, SealedText, WrappedKey } from '../../../contract/index.ts'
import { createDataKeyAuditEntry, createRemoveDataKeyAuditEntry } from '../audit-entries.ts'
import {
  parseSealingKeyId,
  createKeyReplacedError,
  SEALED_COLUMNS,
  SEALED_PATTERN,
  sealedPatternFor,
  type SealedColumn,
} from '../sealed-texts.ts'
import { lockTenant, SYNC_ID_SQL } from '../registry.ts'
import { defineRead, defineWrite, type PlansOf, type Sql, type Steps } from '../sql/port.ts'

/** Every sealed text of the tenant, except those of the audit log. */
const SELECT_SEALED_TEXTS = `select * from (
  ${SEALED_COLUMNS.map(
    (
      column,
    ) => `select 'registry' as "table", connector_id as worker, stream_id as sync, '${column}' as "column", ${column} as text
    from {registry} where tenant_id = :tenant`,
  ).join(' union all ')}
  union all select 'partitions', g.connector_id, g.stream_id, p.partition_key, p.state
    from {partitions} p join {registry} g on g.tenant_id = p.tenant_id and g.sync_id = p.sync_id where p.tenant_id = :tenant
  union all select 'webhooks', '', webhook_id, 'secrets', secrets from {webhooks} where tenant_id = :tenant
  union all select 'connections', '', name, 'credentials', credentials from {connections} where tenant_id = :tenant
  union all select 'connect_sessions', '', session_id, 'secrets', secrets from {connect_sessions} where tenant_id = :tenant
  union all select 'cursor_secrets', '', '', cast(created_at as {text}), secret from {cursor_secrets} where tenant_id = :tenant
  union all select 'column_keys', '', '', key_id, secret from {column_keys} where tenant_id = :tenant
) texts`

export const DATA_KEY_PLANS = {
  wrappingKeys: defineRead(function* (sql) {
    yield* sql.kernel.widenRowSecurity({ tenants: true })
    const found = yield* sql.all<{ id: string }>('select distinct wrapped_by as id from {data_keys}')
    return found.map(({ id }) => id).toSorted()
  }),

  dataKeys: defineRead(function* (sql) {
    return yield* sql.all<WrappedKey>(
      'select key_id as id, wrapped_by as "wrappedBy", wrapped from {data_keys} where tenant_id = :tenant order by number',
    )
  }),

  putDataKey: defineWrite(function* (sql, { id, wrappedBy, wrapped }, { actor, at, replaces }) {
    yield* lockTenant(sql)
    const changed =
      replaces === undefined
        ? yield* insertDataKey(sql, { id, wrappedBy, wrapped })
        : yield* sql.run(
            'update {data_keys} set wrapped_by = :wrappedBy, wrapped = :wrapped where tenant_id = :tenant and key_id = :id and wrapped_by = :replaces',
            { id, wrappedBy, wrapped, replaces },
          )
    if (changed === 0) return false
    yield* sql.kernel.writeAudit(null, createDataKeyAuditEntry(id, wrappedBy, { actor, at, replaces }))
    return true
  }),

  sealedTexts: defineRead(function* (sql, { except, limit }) {
    return yield* sql.all<SealedText>(
      `${SELECT_SEALED_TEXTS} where text like :sealed and text not like :except limit :limit`,
      { sealed: SEALED_PATTERN, except: sealedPatternFor(except), limit },
    )
  }),

  reseal: defineWrite(function* (sql, { table, worker, sync, column, text }, sealed) {
    yield* lockTenant(sql)
    yield* checkSealingKey(sql, sealed)
    const where = 'where tenant_id = :tenant'
    if (table === 'partitions')
      return (
        (yield* sql.run(
          `update {partitions} set state = :sealed ${where} and sync_id = ${SYNC_ID_SQL} and partition_key = :column and state = :text`,
          { sealed, worker, sync, column, text },
        )) > 0
      )
    if (table === 'webhooks')
      return (
        (yield* sql.run(`update {webhooks} set secrets = :sealed ${where} and webhook_id = :sync and secrets = :text`, {
          sealed,
          sync,
          text,
        })) > 0
      )
    if (table === 'connections')
      return (
        (yield* sql.run(
          `update {connections} set credentials = :sealed ${where} and name = :sync and credentials = :text`,
          { sealed, sync, text },
        )) > 0
      )
    if (table === 'connect_sessions')
      return (
        (yield* sql.run(
          `update {connect_sessions} set secrets = :sealed ${where} and session_id = :sync and secrets = :text`,
          { sealed, sync, text },
        )) > 0
      )
    if (table === 'cursor_secrets') {
      return (
        (yield* sql.run(
          `update {cursor_secrets} set secret = :sealed ${where} and created_at = :createdAt and secret = :text`,
          { sealed, createdAt: Number(column), text },
        )) > 0
      )
    }
    if (table === 'column_keys')
      return (
        (yield* sql.run(`update {column_keys} set secret = :sealed ${where} and key_id = :column and secret = :text`, {
          sealed,
          column,
          text,
        })) > 0
      )
    if (!SEALED_COLUMNS.includes(column as SealedColumn)) return false
    return (
      (yield* sql.run(
        `update {registry} set ${column} = :sealed ${where} and connector_id = :worker and stream_id = :sync and ${column} = :text`,
        { sealed, worker, sync, text },
      )) > 0
    )
  }),

  removeDataKey: defineWrite(function* (sql, id, by) {
    yield* lockTenant(sql)
    if ((yield* findNewestKey(sql)) === id) return false
    const like = sealedPatternFor(id)
    if ((yield* sql.get(`${SELECT_SEALED_TEXTS} where text like :like limit 1`, { like })) !== undefined) return false
    if (
      (yield* sql.get('select 1 from {audit} where tenant_id = :tenant and state like :like limit 1', { like })) !==
      undefined
    )
      return false
    const removed = yield* sql.run('delete from {data_keys} where tenant_id = :tenant and key_id = :id', { id })
    if (removed > 0) yield* sql.kernel.writeAudit(null, createRemoveDataKeyAuditEntry(id, by))
    return removed > 0
  }),
} satisfies PlansOf<DataKeyStore>

/** Throws when the text is not sealed with the newest key; see kit/sealed-texts.ts. Legal once the tenant is locked. */
export function* checkSealingKey(sql: Sql, text: string | null, used = parseSealingKeyId(text)): Steps<void> {
  if (used !== null && (yield* findNewestKey(sql)) !== used) throw createKeyReplacedError(used)
}

function* findNewestKey(sql: Sql): Steps<string | undefined> {
  return (yield* sql.get<{ id: string }>(
    'select key_id as id from {data_keys} where tenant_id = :tenant order by number desc limit 1',
  ))?.id
}

function* insertDataKey(sql: Sql, { id, wrappedBy, wrapped }: WrappedKey): Steps<number> {
  const { newest } = yield* sql.one<{ newest: number | null }>(
    'select max(number) as newest from {data_keys} where tenant_id = :tenant',
  )
  return yield* sql.run(
    `{insert_new} into {data_keys} (tenant_id, key_id, number, wrapped_by, wrapped) values (:tenant, :id, :number, :wrappedBy, :wrapped) {or_nothing}`,
    { id, number: (newest ?? 0) + 1, wrappedBy, wrapped },
  )
}
