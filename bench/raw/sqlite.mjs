import { DatabaseSync } from '@photostructure/sqlite'

const COLUMNS = `id text not null primary key, name text, email text, city text, country text, balance real,
  active boolean, created_at datetime, updated_at datetime, notes text`
// The settings of the store.
const SETTINGS = `pragma page_size = 8192; pragma journal_mode = wal; pragma synchronous = full;
  pragma cache_size = -8192; pragma wal_autocheckpoint = 2000`

/** One prepared statement, a keyed table, a transaction per page. */
export class RawSqlite {
  static open(file) {
    const database = new DatabaseSync(file)
    database.exec(SETTINGS)
    return new RawSqlite(database)
  }

  constructor(database) {
    this.database = database
  }

  async recreate() {
    this.database.exec(`drop table if exists raw_accounts; create table raw_accounts (${COLUMNS}) without rowid`)
    this.insert = this.database.prepare('insert into raw_accounts values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)')
    this.delete = this.database.prepare('delete from raw_accounts where id = ?')
  }

  prepare(records) {
    return records
  }

  async write(records) {
    this.database.exec('begin immediate')
    for (const { id, name, email, city, country, balance, active, created_at, updated_at, notes } of records) {
      this.insert.run(id, name, email, city, country, balance, active ? 1 : 0, created_at, updated_at, notes)
    }
    this.database.exec('commit')
  }

  async remove(keys) {
    this.database.exec('begin immediate')
    for (const key of keys) this.delete.run(key)
    this.database.exec('commit')
  }

  async close() {
    this.database.close()
  }
}
