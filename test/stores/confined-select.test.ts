import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { sqliteDriver } from '../../src/stores/sqlite/driver.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { confinedSelectOf } from '../../src/stores/run-select.ts'
import { SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { required } from '../../src/values/required.ts'

test('a confined statement on SQLite ends at its deadline, whatever it does, and the program continues', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tidemark-confined-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const url = `sqlite:${join(folder, 'store.db')}`
  const store = await openSqliteStore({ file: join(folder, 'store.db'), synchronous: 'off' })
  onTestFinished(() => store.close())
  await (await SyncDriver.acquire(store)).cycle([upsert('a', { n: 2n ** 60n })])
  const select = required(confinedSelectOf(sqliteDriver.locate(url, '/')), 'confinedSelectOf')
  const options = { tenant: 'default', limit: 10, deadlineMs: 60_000, only: ['things'] }
  expect((await select('select n from things', options)).rows).toEqual([[2n ** 60n]])
  await expect(select('select * from tidemark_tenants', options)).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
  const endless = 'with recursive k(x) as (select 1 union all select x + 1 from k) select count(*) from k'
  let ticks = 0
  const timer = setInterval(() => ticks++, 50)
  onTestFinished(() => clearInterval(timer))
  await expect(select(endless, { ...options, deadlineMs: 1_500 })).rejects.toMatchObject({ code: 'QUERY_TOO_LONG' })
  expect(ticks).toBeGreaterThan(5)
  const greedy = `with recursive k(x) as (select 1 union all select x + 1 from k where x < 2000) select group_concat(hex(randomblob(1000000))) from k`
  await expect(select(greedy, options)).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
  await expect(select('select 1', { ...options, only: undefined } as never)).rejects.toMatchObject({
    code: 'ARGUMENT_INVALID',
  })
})
