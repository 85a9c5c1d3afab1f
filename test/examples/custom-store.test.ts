import { afterAll, describe, test } from 'vitest'
import { describeStore } from 'tidemark/testing'
import { hasMariadb, MARIADB_HINT, startMariadb } from '../setup/mariadb-server.ts'
import { harnessOn } from './mariadb-harness.ts'

if (!hasMariadb) throw new Error(MARIADB_HINT)
const server = await startMariadb({ 'sync-frm': '0', 'innodb-flush-method': 'nosync', 'innodb-doublewrite': '0' })
afterAll(() => server.stop())

describeStore('mariadb', harnessOn(server.url), { runner: { describe, test } })
