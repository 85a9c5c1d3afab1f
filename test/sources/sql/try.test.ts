import { inject, test } from 'vitest'
import { discover, sql } from '../../../src/sources/sql/source.ts'
import { DatabaseStage } from './stage.ts'
import { SOURCES } from './servers.ts'

for (const kind of SOURCES) {
  test(kind.name, async () => {
    const source = await kind.open(inject('postgresUrl'))
    try {
      await source.exec(`create table items (id integer primary key, name varchar(50), updated_at ${kind.stampType} not null); insert into items values (1, 'a', ${kind.ago(100)}), (2, 'b', ${kind.ago(90)})`)
      console.log(await discover(source))
      const stream = sql({ url: source.url }).table('items', { cursor: 'updated_at', lagMs: 100 })
      const stage = (await DatabaseStage.open()).sync('a', 'incremental', stream.delta).sync('b', 'replace', stream.backfill).sync('c', 'incremental', sql({ url: source.url }).table('items', { cursor: 'id', lagMs: 100 }).delta)
      for (const name of ['a', 'b', 'c']) {
        const { counts, error } = await stage.run(name)
        console.log(name, counts.created, error, JSON.stringify(await stage.rows(name)), JSON.stringify(await stage.state(name)))
      }
      await stage.close()
    } finally {
      await source.close()
    }
  })
}
