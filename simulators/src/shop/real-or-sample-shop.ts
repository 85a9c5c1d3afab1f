import { fileURLToPath } from 'node:url'
import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite'
import { SeededRandom } from '../kit/seeded-random.ts'
import { writeTimeMs, replaceContextUnless, countWritesBy } from '../real-or-simulated.ts'
import { required } from '../kit/required.ts'

/** Options of `realOrSampleShop`. */
export interface RealOrSampleShopOptions {
  /** The secret that holds the URL of the real database. */
  readonly unless: string
  /** Path of the shop's SQLite file. */
  readonly file: URL
  /** When the shop was opened. */
  readonly since: string
}

/**
 * For a worker that should run before it has a database: until the secret is set, a `sql` source reads a small SQLite
 * file, created on the first read. Its rows change over time; it is an ordinary file, so you can write to it as well.
 */
export function realOrSampleShop({
  unless,
  file,
  since,
}: RealOrSampleShopOptions): <Source extends object>(source: Source) => Source {
  const path = fileURLToPath(file)
  const sinceMs = Date.parse(since)
  return replaceContextUnless(unless, ({ clock }) => ({
    secrets: {
      get: () => {
        updateSampleShop(path, sinceMs, clock.now())
        return `sqlite:${path}`
      },
    },
  }))
}

const INITIAL_CUSTOMERS = 120
const FIRST_NAMES = ['Ada', 'Blaise', 'Chien', 'Dorothy', 'Edsger', 'Frances', 'Grace', 'Hedy', 'Ivan', 'Joan']
const CITIES = ['Aberdeen', 'Bergen', 'Cádiz', 'Dover', 'Esbjerg', 'Faro', 'Genoa']

/** The file's `user_version` holds the number of writes made: every process continues from there. */
function updateSampleShop(file: string, sinceMs: number, nowMs: number): void {
  const db = new DatabaseSync(file)
  try {
    db.exec('pragma busy_timeout = 10000; begin immediate')
    const { user_version: version } = db.prepare('pragma user_version').get() as { user_version: number }
    if (version === 0) createTables(db, new Date(sinceMs).toISOString())
    const writes = countWritesBy(nowMs, sinceMs)
    for (let n = Math.max(0, version - 1); n < writes; n++)
      applyWrite(db, n, new Date(writeTimeMs(n, sinceMs)).toISOString())
    db.exec(`pragma user_version = ${Math.max(version, writes + 1)}; commit`)
  } finally {
    db.close()
  }
}

/** An update that does not set the time gets the current one. */
const TABLES = `
  create table countries (code text primary key, name text not null);
  insert into countries values ('DK', 'Denmark'), ('ES', 'Spain'), ('GB', 'United Kingdom'), ('IT', 'Italy'), ('NO', 'Norway'), ('PT', 'Portugal');
  create table customers (id integer primary key, name text not null, email text, city text, updated_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')));
  create index customers_updated_at on customers (updated_at);
  create trigger customers_touched after update on customers when new.updated_at = old.updated_at
  begin update customers set updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') where id = new.id; end;`

function createTables(db: DatabaseSyncInstance, at: string): void {
  db.exec(TABLES)
  for (let n = 0; n < INITIAL_CUSTOMERS; n++) insertCustomer(db, n, at)
}

function insertCustomer(db: DatabaseSyncInstance, n: number, at: string): void {
  const name = required(FIRST_NAMES[n % FIRST_NAMES.length], 'FIRST_NAMES[…]')
  db.prepare('insert into customers (name, email, city, updated_at) values (?, ?, ?, ?)').run(
    name,
    `${name.toLowerCase()}.${n}@example.com`,
    required(CITIES[n % CITIES.length], 'CITIES[n % CITIES.length]'),
    at,
  )
}

/** Mostly a customer moves; occasionally one is added or removed. */
function applyWrite(db: DatabaseSyncInstance, n: number, at: string): void {
  const random = new SeededRandom(n + 1, 'shop')
  if (n % 8 === 7) return insertCustomer(db, INITIAL_CUSTOMERS + n, at)
  const { id } = db
    .prepare(
      'select id from customers order by id limit 1 offset cast(? * (select count(*) from customers) as integer)',
    )
    .get(random.next()) as { id: number }
  if (n % 12 === 10) db.prepare('delete from customers where id = ?').run(id)
  else
    db.prepare('update customers set city = ?, updated_at = ? where id = ?').run(
      required(CITIES[Math.floor(random.next() * CITIES.length)], 'CITIES[…]'),
      at,
      id,
    )
}
