import type { SealedText } from '../../contract/index.ts'
import { removeKeyEntry } from '../kit/audit-entries.ts'
import { keyOf, keyReplaced, SEALED_COLUMNS, SEALED_LIKE, sealedLike, type SealedColumn } from '../kit/sealed-texts.ts'
import type { Session } from './connection.ts'
import { writeAudit } from './registry.ts'

/** What is sealed at rest, and with which data key. */

export function sealedTexts({ connection, tenantId }: Session, { except, limit }: { except: string; limit: number }): SealedText[] {
  return connection.all<SealedText>(`${TEXTS} where text like ?2 and text not like ?3 limit ?4`, tenantId, SEALED_LIKE, sealedLike(except), limit).map((text) => ({ ...text }))
}

export function reseal({ connection, tenantId }: Session, { table, worker, sync, column, text }: SealedText, sealed: string): boolean {
  return connection.write(() => {
    checkSealingKey({ connection, tenantId }, sealed)
    if (table === 'webhooks') return connection.run('update tidemark_webhooks set secrets = ? where tenant_id = ? and webhook_id = ? and secrets = ?', sealed, tenantId, sync, text).changes > 0
    if (table === 'cursor_secrets') return connection.run('update tidemark_cursor_secrets set secret = ? where tenant_id = ? and created_at = ? and secret = ?', sealed, tenantId, Number(column), text).changes > 0
    if (!SEALED_COLUMNS.includes(column as SealedColumn)) return false
    return connection.run(`update tidemark_registry set ${column} = ? where tenant_id = ? and connector_id = ? and stream_id = ? and ${column} = ?`, sealed, tenantId, worker, sync, text).changes > 0
  })
}

export function removeDataKey(session: Session, id: string, by: { actor: string; at: number }): boolean {
  const { connection, tenantId } = session
  return connection.write(() => {
    if (newestKey(session) === id) return false
    if (connection.get(`${TEXTS} where text like ?2 limit 1`, tenantId, sealedLike(id)) !== undefined) return false
    if (connection.get('select 1 from tidemark_audit where tenant_id = ? and state like ? limit 1', tenantId, sealedLike(id)) !== undefined) return false
    const { changes } = connection.run('delete from tidemark_data_keys where tenant_id = ? and key_id = ?', tenantId, id)
    if (changes > 0) writeAudit(session, null, removeKeyEntry(id, by))
    return changes > 0
  })
}

/** Throws when the text is sealed with another key than the newest; see kit/sealed-texts.ts. */
export function checkSealingKey(session: Pick<Session, 'connection' | 'tenantId'>, text: string | null, used = keyOf(text)): void {
  if (used !== null && newestKey(session) !== used) throw keyReplaced(used)
}

function newestKey({ connection, tenantId }: Pick<Session, 'connection' | 'tenantId'>): string | undefined {
  return connection.get<{ id: string }>('select key_id as id from tidemark_data_keys where tenant_id = ? order by number desc limit 1', tenantId)?.id
}

const TEXTS = `select * from (
  ${SEALED_COLUMNS.map((column) => `select 'registry' as "table", connector_id as worker, stream_id as sync, '${column}' as "column", ${column} as text from tidemark_registry where tenant_id = ?1`).join(' union all ')}
  union all select 'webhooks', '', webhook_id, 'secrets', secrets from tidemark_webhooks where tenant_id = ?1
  union all select 'cursor_secrets', '', '', cast(created_at as text), secret from tidemark_cursor_secrets where tenant_id = ?1
)`
