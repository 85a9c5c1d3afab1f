import { join } from 'node:path'
import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { loadWorker } from '../../src/worker/load-worker.ts'
import { openStore, runCycle } from '../../src/index.ts'
import { createDatabase, dropDatabase } from '../setup/postgres-server.ts'
import { EMPTY, FULL } from './things.ts'

const server = inject('postgresUrl')

test.skipIf(server === '')('every kind of property is typed in the table of PostgreSQL', async () => {
  const { worker } = await loadWorker(join(import.meta.dirname, 'workers/every-kind.ts'))
  const url = await createDatabase(server)
  onTestFinished(() => dropDatabase(server, url))
  const store = await openStore(url)
  await runCycle(worker, 'thingsSync', { store })
  await store.close()
  const { rows, fields } = await select(url, 'select *, "Day"::text as "Day" from things order by _key')
  const {
    _key,
    _sequence,
    _created_sequence,
    _hash,
    _upstream_at,
    _synced_at,
    _cursor,
    _writer,
    _owner,
    _extra,
    ...full
  } = rows[1]!
  expect(full).toEqual(FULL)
  expect(rows[0]).toMatchObject(EMPTY)
  expect(rows[2]).toMatchObject({ ID: 'sparse', Done: null, Tags: null })
  const typeOf = (name: string): number => fields.find((field) => field.name === name)!.dataTypeID
  const [boolean, text, textArray, jsonb] = [16, 25, 1009, 3802]
  expect({ Done: typeOf('Done'), Name: typeOf('Name'), Tags: typeOf('Tags'), Where: typeOf('Where') }).toEqual({
    Done: boolean,
    Name: text,
    Tags: textArray,
    Where: jsonb,
  })
})

async function select(url: string, sql: string): Promise<pg.QueryResult<Record<string, unknown>>> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return await client.query<Record<string, unknown>>(sql)
  } finally {
    await client.end()
  }
}
