import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { JsonObject } from '../../src/contract/index.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { DestinationBench } from '../../src/testing/destination-cases/harness.ts'
import { seededRandom } from '../../src/testing/store-cases/harness.ts'
import { parseJson } from '../../src/values/json.ts'
import { buildPackage } from '../cli/package.ts'
import { pagesOf, tableOf } from './lake-harness.ts'
import { openMemoryDestination } from './memory-destination.ts'

const ROWS = Number(process.env['TIDEMARK_DESTINATION_ROWS'] ?? 2_000)
const KILLS = Number(process.env['TIDEMARK_DESTINATION_KILLS'] ?? 4)
const CHANGES = Number(process.env['TIDEMARK_DESTINATION_CHANGES'] ?? 1_600)
const COMMIT_ROWS = 10_000
const PARTS = 4

describe('a process that is killed while it applies', () => {
  test.each(['iceberg', 'parquet'] as const)(
    'leaves a lake of %s that ends equal to the store',
    async (format) => {
      const folder = mkdtempSync(join(tmpdir(), 'tidemark-lake-killed-'))
      const file = join(folder, 'store.db')
      const store = await openSqliteStore({ file })
      onTestFinished(async () => {
        await store.close()
        rmSync(folder, { recursive: true, force: true })
      })
      const bench = new DestinationBench(openMemoryDestination(), store)
      const random = seededRandom(7)
      const commit = async (changes: ReadonlyArray<readonly [string, JsonObject | null]>): Promise<void> => {
        for (let at = 0; at < changes.length; at += COMMIT_ROWS)
          await bench.commit(...changes.slice(at, at + COMMIT_ROWS))
      }
      const keyOf = (n: number): string => `k${String(n).padStart(9, '0')}`
      const change = (count: number): Promise<void> =>
        commit([
          ...new Map(
            Array.from({ length: count }, () => [
              keyOf(Math.floor(random() * ROWS * 1.1)),
              random() < 0.2 ? null : { n: Math.floor(random() * 1e6), [`f${Math.floor(random() * 5)}`]: 'x' },
            ]),
          ),
        ])
      const isLarge = ROWS > 100_000
      for (let from = 0; from < ROWS; from += COMMIT_ROWS)
        await commit(
          Array.from({ length: Math.min(COMMIT_ROWS, ROWS - from) }, (_, n) => [
            keyOf(from + n),
            {
              n: from + n,
              name: `row ${from + n}`,
              ...(isLarge && { notes: `${'lorem ipsum '.repeat(20)}${n % 100}` }),
            },
          ]),
        )
      const target = join(folder, 'lake')
      const dist = join(buildPackage(), 'dist')
      const start = (mode: string): ChildProcess =>
        spawn(process.execPath, [join(import.meta.dirname, 'lake-applier.mjs'), dist, file, target, format, mode], {
          stdio: ['ignore', 'pipe', 'inherit'],
        })
      for (let kill = 0; kill < KILLS; kill++) {
        const applier = start('forever')
        const exited = once(applier, 'exit')
        for (let part = 0; part < PARTS; part++) {
          await change(Math.ceil(CHANGES / KILLS / PARTS))
          await sleep((100 + random() * 300) * (isLarge ? 20 : 1))
        }
        applier.kill('SIGKILL')
        await exited
      }
      const last = start('once')
      let output = ''
      last.stdout?.on('data', (text: Buffer) => (output += text.toString()))
      expect((await once(last, 'exit'))[0]).toBe(0)
      if (isLarge) console.info(`${format}: peak memory of the last run ${output.trim()} MB`)
      let count = 0
      let after: string | undefined
      for await (const page of pagesOf(await tableOf(target, 'things'))) {
        const rows = await store.rows({ database: 'things', limit: page.length, ...(after !== undefined && { after }) })
        expect(page).toEqual(
          rows.map(({ key, sequence, text }) => ({ key, sequence, record: parseJson(text) as JsonObject })),
        )
        after = page.at(-1)?.key
        count += page.length
      }
      expect(count).toBeGreaterThan(ROWS / 2)
      expect(await store.rows({ database: 'things', limit: 1, ...(after !== undefined && { after }) })).toEqual([])
    },
    60_000 + ROWS * 4 + KILLS * 60_000,
  )
})
