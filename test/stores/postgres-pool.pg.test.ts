import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { Connection } from '../../src/stores/postgres/connection.ts'

const server = inject('postgresUrl')

test.skipIf(server === '')(
  'a connection is replaced before the catalog entries it keeps grow without limit',
  async () => {
    const connection = new Connection({ url: server, poolMax: 1 })
    const backends = new Map<number, number>()
    for (let n = 0; n < 2_500; n++) {
      const { pid } = await connection.read(
        'default',
        async (transaction) => (await transaction.get<{ pid: number }>('select pg_backend_pid() as pid'))!,
      )
      backends.set(pid, (backends.get(pid) ?? 0) + 1)
    }
    await connection.close()
    expect([...backends.values()]).toEqual([2_000, 500])
  },
)

test.skipIf(server === '')(
  'values are read the same way where the program has changed the parsers of the driver',
  async () => {
    const before = [16, 20, 21, 23, 25, 114, 701].map((id) => [id, pg.types.getTypeParser(id)] as const)
    onTestFinished(() => {
      for (const [id, parser] of before) pg.types.setTypeParser(id, parser)
    })
    for (const [id] of before) pg.types.setTypeParser(id, () => 'changed')
    const connection = new Connection({ url: server, poolMax: 1 })
    onTestFinished(() => connection.close())
    const row = await connection.read('default', (transaction) =>
      transaction.get(
        `select true as yes, 1::bigint as long, 2::smallint as short, 3 as whole, 'x' as text, '{"a":1}'::json as json, 1.5::float8 as double`,
      ),
    )
    expect(row).toEqual({ yes: true, long: 1, short: 2, whole: 3, text: 'x', json: { a: 1 }, double: 1.5 })
  },
)
