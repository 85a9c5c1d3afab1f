import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { CONNECTORS } from '../../src/config/manifest/connectors.ts'
import { buildWorker } from '../../src/config/manifest/manifest.ts'
import { runCycle } from '../../src/worker/run-cycle.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { CdcFixture } from '../sources/postgres-cdc/cdc-fixture.ts'

test('a manifest alone follows the log of PostgreSQL, with a slot for each stream', async () => {
  const shop = await CdcFixture.open()
  const store = await openSqliteStore({ file: ':memory:' })
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-manifest-'))
  try {
    await shop.exec(
      'create table orders (id int primary key, total int); create table people (id int primary key, name text); insert into orders values (1, 10); insert into people values (1, $$Ada$$)',
    )
    const file = join(folder, 'tidemark.yaml')
    writeFileSync(
      file,
      'name: shop\nconnector: postgres-cdc\nconfig: { url: "${SHOP_URL}" }\nstreams:\n  - { id: shop.orders, options: { table: public.orders } }\n  - { id: shop.people, options: { table: public.people } }\n',
    )
    const worker = await buildWorker(file, 'tidemark.yaml', {})
    const secrets = { SHOP_URL: shop.server.url }
    for (const { name } of worker.manifest.syncs)
      expect(await runCycle(worker, name, { store, secrets }), name).toMatchObject({
        stopReason: 'complete',
        error: null,
      })
    await shop.exec('update orders set total = 11; delete from people')
    for (const name of ['shop.orders', 'shop.people'])
      expect(await runCycle(worker, name, { store, secrets }), name).toMatchObject({
        stopReason: 'complete',
        error: null,
      })
    expect(
      (await store.rows({ database: 'shop.orders', limit: 10 })).map(({ text }) => JSON.parse(text) as unknown),
    ).toEqual([{ id: 1, total: 11 }])
    expect(await store.rows({ database: 'shop.people', limit: 10 })).toEqual([])
    expect((await shop.client.query('select slot_name from pg_replication_slots order by 1')).rows).toEqual([
      { slot_name: 'tidemark_shop_orders' },
      { slot_name: 'tidemark_shop_people' },
    ])
    const found = await CONNECTORS['postgres-cdc'].discover!({ url: 'SHOP_URL' }, folder, {
      secrets: { get: () => shop.server.url },
      signal: new AbortController().signal,
    } as never)
    expect(found.map(({ id, key }) => ({ id, key }))).toEqual([
      { id: 'public.orders', key: ['id'] },
      { id: 'public.people', key: ['id'] },
    ])
  } finally {
    rmSync(folder, { recursive: true })
    await store.close()
    await shop.close()
  }
})
