import type { DatabaseSyncInstance } from '@photostructure/sqlite'
import { createReceiver, type ReceivedBatch } from 'tidemark/destinations/http/receiver'

/** Keeps every database as a table of SQLite, with the records as JSON. */
export function createSqliteReceiver(
  db: DatabaseSyncInstance,
  secret: string,
): (request: Request) => Promise<Response> {
  db.exec('create table if not exists tidemark_tokens (name text primary key, tokens text not null)')
  return createReceiver({
    secret,
    async transaction(work) {
      db.exec('begin immediate')
      try {
        const result = await work(db)
        db.exec('commit')
        return result
      } catch (error) {
        db.exec('rollback')
        throw error
      }
    },
    readTokens(_, name) {
      const row = db.prepare('select tokens from tidemark_tokens where name = ?').get(name)
      return row === undefined ? null : String(row['tokens'])
    },
    writeTokens(_, name, tokens) {
      if (tokens === null) db.prepare('delete from tidemark_tokens where name = ?').run(name)
      else db.prepare('insert or replace into tidemark_tokens values (?, ?)').run(name, tokens)
    },
    apply: writeBatch,
    remove(_, name) {
      db.exec(`drop table if exists "${name}"; drop table if exists "${name}__loading"`)
    },
  })
}

/** A load is written to a second table, which replaces the first with its last batch. */
function writeBatch(db: DatabaseSyncInstance, { name, target, isFirst, isLast, schema, changes }: ReceivedBatch): void {
  const isMirror = schema.mode === 'mirror'
  const table = target === 'live' ? `"${name}"` : `"${name}__loading"`
  if (isFirst) {
    const primaryKey = isMirror ? 'key' : 'sequence'
    db.exec(`drop table if exists ${table}`)
    db.exec(`create table ${table} (key text, sequence integer, action text, record text, primary key (${primaryKey}))`)
  }
  const upsert = db.prepare(`insert ${isMirror ? 'or replace ' : ''}into ${table} values (?, ?, ?, ?)`)
  const remove = db.prepare(`delete from ${table} where key = ?`)
  for (const { key, sequence, action, text } of changes) {
    if (isMirror && text === null) remove.run(key)
    else upsert.run(key, sequence, action, text)
  }
  if (isLast) {
    db.exec(`drop table if exists "${name}"`)
    db.exec(`alter table ${table} rename to "${name}"`)
  }
}
