import { describe, onTestFinished, test } from 'vitest'
import { hasMariadb, startMariadb } from '../setup/mariadb-server.ts'
import { KILL_TIMEOUT_MS, killWhileApplying } from './kill-destination.ts'
import { connect, readMariadbRows } from './mariadb-harness.ts'

const suite = hasMariadb ? describe : describe.skip

suite('MariaDB', () => {
  test(
    'processes that are killed leave a destination that ends equal to the store',
    async () => {
      const server = await startMariadb()
      const client = await connect(server.url)
      onTestFinished(async () => {
        client.destroy()
        await server.stop()
      })
      await killWhileApplying({
        kind: 'mariadb',
        options: { url: server.url, database: 'killed' },
        page: (after, limit) => readMariadbRows(client, 'killed', 'things', { after, limit }),
      })
    },
    KILL_TIMEOUT_MS,
  )
})
