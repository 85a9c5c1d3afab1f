import { spawn, type ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished } from 'vitest'
import type { JsonValue, Store } from '../../src/contract/index.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { seededRandom } from '../../src/testing/store-cases/harness.ts'
import type { StoredRow } from '../../src/testing/destination-cases/harness.ts'
import { parseJson, stringifyJson } from '../../src/values/json.ts'
import { buildPackage } from '../cli/package.ts'

const ROWS = Number(process.env['TIDEMARK_DESTINATION_ROWS'] ?? 2_000)
const CHANGES = Number(process.env['TIDEMARK_DESTINATION_CHANGES'] ?? 1_000)
const KILLS = Number(process.env['TIDEMARK_DESTINATION_KILLS'] ?? 6)
/** How long a process works before it is killed, at most. */
const RUN_MS = Number(process.env['TIDEMARK_DESTINATION_RUN_MS'] ?? 300)
const PAGE = 5_000

export const KILL_TIMEOUT_MS = 300_000 + KILLS * (5_000 + RUN_MS) + ROWS * 2

/** A destination that a killed process writes to. */
export interface KilledDestination {
  /** The name of its folder and its function, and the options of the function. */
  readonly kind: string
  readonly options: Readonly<Record<string, unknown>>
  /** Rows of `things` above a key, in order of key by bytes. */
  page(after: string, limit: number): Promise<StoredRow[]>
}

/**
 * Kills the process that applies, and the one that writes to the store, at random times. At the end, every row of the
 * destination is equal to its row in the store.
 */
export async function killWhileApplying({ kind, options, page }: KilledDestination): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-destination-'))
  const file = join(folder, 'store.db')
  const store = await openSqliteStore({ file })
  onTestFinished(async () => {
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const dist = join(buildPackage(), 'dist')
  const random = seededRandom(7)
  const run = (program: string, ...args: (string | number)[]): ChildProcess =>
    spawn(process.execPath, [join(import.meta.dirname, program), dist, file, ...args.map(String)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
  const apply = (mode: 'forever' | 'once'): ChildProcess =>
    run('applier.mjs', kind, JSON.stringify(options), mode, Math.max(200, ROWS / 50))
  const write = (until: number, seed: number): ChildProcess => run('writer.mjs', ROWS, until, seed)
  await finished(write(ROWS, 0))
  let kills = 0
  for (let round = 1; kills < KILLS; round++) {
    // Changes arrive during the load, and after it.
    const processes = [apply('forever'), write(ROWS + Math.ceil((CHANGES * round) / KILLS), round)]
    const exits = processes.map((process) => once(process, 'exit'))
    for (const [at, { stdout }] of processes.entries())
      if (stdout !== null) await Promise.race([once(stdout, 'data'), exits[at]])
    await sleep(RUN_MS * random())
    for (const process of random() < 0.7 ? processes : processes.slice(0, 1)) {
      process.kill('SIGKILL')
      kills++
    }
    await exits[0]
    await exits[1]
  }
  await finished(write(ROWS + CHANGES, kills))
  await finished(apply('once'))
  expect(await hashRows(page)).toEqual(await hashRows((after, limit) => readStore(store, after, limit)))
}

async function finished(process: ChildProcess): Promise<void> {
  expect((await once(process, 'exit'))[0]).toBe(0)
}

/** The number of rows, and a hash of all keys, sequences and records. */
async function hashRows(page: KilledDestination['page']): Promise<{ count: number; hash: string }> {
  const hash = createHash('sha256')
  let count = 0
  for (let after = ''; ;) {
    const rows = await page(after, PAGE)
    for (const { key, sequence, record } of rows)
      hash.update(`${JSON.stringify(key)} ${sequence} ${stringifyJson(sortMembers(record))}\n`)
    count += rows.length
    const last = rows.at(-1)
    if (last === undefined) return { count, hash: hash.digest('hex') }
    after = last.key
  }
}

async function readStore(store: Store, after: string, limit: number): Promise<StoredRow[]> {
  const rows = await store.rows({ database: 'things', limit, ...(after !== '' && { after }) })
  return rows.map(({ key, sequence, text }) => ({ key, sequence, record: parseJson(text) as StoredRow['record'] }))
}

function sortMembers(record: StoredRow['record']): JsonValue {
  if (record === null) return null
  return Object.fromEntries(Object.entries(record).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}
