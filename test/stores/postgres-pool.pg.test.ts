import { expect, inject, test } from 'vitest'
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
