import type { SealedText } from '../../contract/index.ts'
import { removeKeyEntry } from '../kit/audit-entries.ts'
import { keyOf, keyReplaced, SEALED_COLUMNS, SEALED_LIKE, sealedLike, type SealedColumn } from '../kit/sealed-texts.ts'
import type { Session, Transaction } from './connection.ts'
import { lockTenant, writeAudit } from './registry.ts'

/** What is sealed at rest, and with which data key. */

export function sealedTexts({ connection, tenant }: Session, { except, limit }: { except: string; limit: number }): Promise<SealedText[]> {
  return connection.read(tenant, (transaction) => transaction.all<SealedText>(`${TEXTS} where text like $2 and text not like $3 limit $4`, tenant, SEALED_LIKE, sealedLike(except), limit))
}

export function reseal({ connection, tenant }: Session, { table, worker, sync, column, text }: SealedText, sealed: string): Promise<boolean> {
  return connection.write(tenant, async (transaction) => {
    const run = async (statement: string, ...values: Array<string | number>): Promise<boolean> => (await transaction.run(statement, tenant, sealed, text, ...values)) > 0
    const where = 'where tenant_id = $1'
    await lockTenant(transaction)
    await checkSealingKey(transaction, sealed)
    if (table === 'webhooks') return run(`update tidemark.webhooks set secrets = $2 ${where} and secrets = $3 and webhook_id = $4`, sync)
    if (table === 'cursor_secrets') return run(`update tidemark.cursor_secrets set secret = $2 ${where} and secret = $3 and created_at = $4`, Number(column))
    if (!SEALED_COLUMNS.includes(column as SealedColumn)) return false
    return run(`update tidemark.registry set ${column} = $2 ${where} and ${column} = $3 and connector_id = $4 and stream_id = $5`, worker, sync)
  })
}

export function removeDataKey({ connection, tenant }: Session, id: string, by: { actor: string; at: number }): Promise<boolean> {
  return connection.write(tenant, async (transaction) => {
    await lockTenant(transaction)
    if ((await newestKey(transaction)) === id) return false
    if ((await transaction.get(`${TEXTS} where text like $2 limit 1`, tenant, sealedLike(id))) !== undefined) return false
    if ((await transaction.get('select 1 from tidemark.audit where tenant_id = $1 and state like $2 limit 1', tenant, sealedLike(id))) !== undefined) return false
    const removed = await transaction.run('delete from tidemark.data_keys where tenant_id = $1 and key_id = $2', tenant, id)
    if (removed > 0) writeAudit(transaction, null, removeKeyEntry(id, by))
    return removed > 0
  })
}

/** Throws when the text is sealed with another key than the newest; see kit/sealed-texts.ts. Legal once the tenant is locked. */
export async function checkSealingKey(transaction: Transaction, text: string | null, used = keyOf(text)): Promise<void> {
  if (used !== null && (await newestKey(transaction)) !== used) throw keyReplaced(used)
}

async function newestKey(transaction: Transaction): Promise<string | undefined> {
  return (await transaction.get<{ id: string }>('select key_id as id from tidemark.data_keys where tenant_id = $1 order by number desc limit 1', transaction.tenant))?.id
}

const TEXTS = `select * from (
  ${SEALED_COLUMNS.map((column) => `select 'registry' as "table", connector_id as worker, stream_id as sync, '${column}' as "column", ${column} as text from tidemark.registry where tenant_id = $1`).join(' union all ')}
  union all select 'webhooks', '', webhook_id, 'secrets', secrets from tidemark.webhooks where tenant_id = $1
  union all select 'cursor_secrets', '', '', created_at::text, secret from tidemark.cursor_secrets where tenant_id = $1
) texts`
