// node bench/programs/disk.mjs <store url> <records> <page size>: bytes per row on disk and bytes per row written,
// of the bare table and of the store, as one JSON line.
import { readFileSync, statSync } from 'node:fs'
import { DatabaseSync } from '@photostructure/sqlite'
import pg from 'pg'
import { Lander, landingOf, openBareStore } from '../lander.mjs'
import { openRaw } from '../raw/open.mjs'
import { pagesOf, recordOf } from '../records.mjs'

const [url, count, size] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])]
const meter = url.startsWith('sqlite:') ? sqliteMeter(url.slice('sqlite:'.length)) : await postgresMeter(url)
const results = { raw: await measureRaw() }
const store = await openBareStore(url)
const lander = await Lander.take(store, 'disk')
const empty = await meter.disk()
for (const pass of ['first', 'unchanged', 'changed100']) results[pass] = await measure(pass)
await lander.release()
await store.close()
await meter.close()
console.log(JSON.stringify(results))

async function measureRaw() {
  const raw = await openRaw(url)
  await raw.recreate()
  const [disk, written] = [await meter.disk('.raw'), await meter.written()]
  for (const page of pagesOf('first', count, size)) await raw.write(raw.prepare(page.map(([i]) => recordOf(i))))
  const after = await meter.written()
  const result = { disk: ((await meter.disk('.raw')) - disk) / count, written: (after - written) / count }
  await raw.close()
  return result
}

/** One incremental cycle per page, so that nothing is swept. */
async function measure(pass) {
  const written = await meter.written()
  for (const page of pagesOf(pass, count, size)) {
    await lander.cycle(page.map(([i, version]) => landingOf(recordOf(i, version))))
  }
  const after = await meter.written()
  return { disk: ((await meter.disk()) - empty) / count, written: (after - written) / count }
}

/** The file after a checkpoint. The bytes this process passed to the kernel: the log, and the file at checkpoints. */
function sqliteMeter(file) {
  return {
    disk: (suffix = '') => {
      const database = new DatabaseSync(file + suffix)
      database.exec('pragma wal_checkpoint(truncate)')
      database.close()
      return statSync(file + suffix).size
    },
    written: () => Number(/^wchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))[1]),
    close: () => {},
  }
}

/** All tables of the database with their indexes, and the write-ahead log. */
async function postgresMeter(connectionString) {
  const client = new pg.Client({ connectionString })
  await client.connect()
  const value = async (sql) => Number((await client.query(sql)).rows[0].value)
  return {
    disk: () => value('select pg_database_size(current_database()) as value'),
    written: () => value("select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') as value"),
    close: () => client.end(),
  }
}
