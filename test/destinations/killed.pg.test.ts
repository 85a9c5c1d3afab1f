import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { DestinationBench } from '../../src/testing/destination-cases/harness.ts'
import { seededRandom } from '../../src/testing/store-cases/harness.ts'
import { buildPackage } from '../cli/package.ts'
import { openMemoryDestination } from './memory-destination.ts'
import { readRows } from './postgres-harness.ts'

const server = inject('postgresUrl')
const suite = server === '' ? describe.skip : describe
const ROWS = Number(process.env['TIDEMARK_DESTINATION_ROWS'] ?? 2_000)
const KILLS = Number(process.env['TIDEMARK_DESTINATION_KILLS'] ?? 6)

suite('a process that is killed while it applies', () => {
  test(
    'leaves a destination that ends equal to the store',
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'tidemark-destination-'))
      const file = join(folder, 'store.db')
      const schema = `killed_${process.pid}`
      const client = new pg.Client({ connectionString: server })
      await client.connect()
      const store = await openSqliteStore({ file })
      onTestFinished(async () => {
        await store.close()
        await client.query(`drop schema if exists ${schema} cascade`)
        await client.end()
        rmSync(folder, { recursive: true, force: true })
      })
      const bench = new DestinationBench(openMemoryDestination(), store)
      const random = seededRandom(7)
      const change = (count: number) =>
        bench.commit(
          ...new Map(
            Array.from({ length: count }, () => [
              `k${Math.floor(random() * ROWS)}`,
              random() < 0.2 ? null : { n: Math.floor(random() * 1e6), [`f${Math.floor(random() * 5)}`]: 'x' },
            ]),
          ),
        )
      await bench.commit(...Array.from({ length: ROWS }, (_, n) => [`k${n}`, { n, name: `row ${n}` }] as const))
      const start = (mode: string): ChildProcess =>
        spawn(
          process.execPath,
          [join(import.meta.dirname, 'applier.mjs'), join(buildPackage(), 'dist'), file, server, schema, mode],
          { stdio: 'inherit' },
        )
      for (let kill = 0; kill < KILLS; kill++) {
        const applier = start('forever')
        const exited = once(applier, 'exit')
        for (let part = 0; part < 4; part++) {
          await change(ROWS / 20)
          await sleep(100 + random() * 300)
        }
        applier.kill('SIGKILL')
        await exited
      }
      const last = start('once')
      expect((await once(last, 'exit'))[0]).toBe(0)
      const byKey = (rows: readonly { key: string }[]) => rows.toSorted((a, b) => (a.key < b.key ? -1 : 1))
      const [copied, current] = [await readRows(client, schema, 'things'), await bench.current()]
      expect(copied.length).toBe(current.length)
      expect(byKey(copied)).toEqual(byKey(current))
    },
    120_000 + KILLS * 5_000,
  )
})
