import { fork, type ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { DatabaseSync } from '@photostructure/sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { DestinationMode } from '../../src/contract/index.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { DestinationBench } from '../../src/testing/destination-cases/harness.ts'
import { findFreePort } from '../../simulators/src/kit/free-port.ts'
import { seededRandom } from '../../src/testing/store-cases/harness.ts'
import { KafkaSimulator } from '../../simulators/src/index.ts'
import { buildPackage } from '../cli/package.ts'
import { SECRET } from './http-harness.ts'
import { readMessages } from './kafka-harness.ts'
import { openMemoryDestination } from './memory-destination.ts'

const ROWS = Number(process.env['TIDEMARK_DESTINATION_ROWS'] ?? 2_000)
const CHANGES = Number(process.env['TIDEMARK_DESTINATION_CHANGES'] ?? 1_500)
const KILLS = Number(process.env['TIDEMARK_DESTINATION_KILLS'] ?? 5)
const isCampaign = ROWS > 100_000
const CAMPAIGN: ['http' | 'kafka', DestinationMode][] = [
  ['http', 'mirror'],
  ['kafka', 'mirror'],
]

interface Target {
  readonly options: object
  /** Kills the other side, if it can be, and starts it again. */
  restart?(): Promise<void>
  /** The stored changes: in `mirror` one per key. */
  read(): Iterable<readonly [key: string, sequence: number, text: string | null]>
}

describe('a process that is killed while it applies', () => {
  // Every change shows in `append`, also one that is applied twice.
  test.each<['http' | 'kafka', DestinationMode]>([
    ['http', 'append'],
    ['kafka', 'append'],
    ...(isCampaign ? CAMPAIGN : []),
  ])(
    '%s in mode %s: ends equal to the store',
    async (kind, mode) => {
      const folder = mkdtempSync(join(tmpdir(), 'tidemark-streams-'))
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
      const file = join(folder, 'store.db')
      const store = await openSqliteStore({ file })
      onTestFinished(() => store.close())
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
      for (let from = 0; from < ROWS; from += 10_000)
        await bench.commit(
          ...Array.from({ length: Math.min(10_000, ROWS - from) }, (_, n) => {
            const row = from + n
            return [`k${row}`, { n: row, name: `row ${row}`, text: 'some words that make a row longer' }] as const
          }),
        )
      const target = await (kind === 'http' ? openReceiver(folder) : openBrokers())
      const memory = new Memory()
      const start = (isOnce: boolean): ChildProcess => {
        const limits = isCampaign ? null : { rowsMax: 200, bytesMax: 1_000_000 }
        const input = { dist: join(buildPackage(), 'dist'), file, kind, options: target.options, mode, limits, isOnce }
        const applier = fork(join(import.meta.dirname, 'stream-applier.mjs'), [JSON.stringify(input)])
        memory.watch(applier)
        return applier
      }
      for (let kill = 0; kill < KILLS; kill++) {
        const applier = start(false)
        const exited = once(applier, 'exit')
        await once(applier, 'message')
        const parts = isCampaign ? 20 : 3
        for (let part = 0; part < parts; part++) {
          await change(Math.ceil(CHANGES / KILLS / parts))
          await sleep(60 + random() * 200)
          if (part === 1 && kill % 2 === 1) await target.restart?.()
        }
        applier.kill('SIGKILL')
        await exited
      }
      const last = start(true)
      expect((await once(last, 'exit'))[0]).toBe(0)
      memory.stop()
      const expected = mode === 'mirror' ? await readStore(bench) : await readLog(bench)
      const [copied, wanted] = [digest(target.read()), digest(expected)]
      expect(copied).toEqual(wanted)
      if (isCampaign) console.log(JSON.stringify({ kind, mode, ...copied, kills: KILLS, rssMaxMb: memory.maxMb }))
    },
    120_000 + KILLS * 5_000 + ROWS * 2,
  )
})

async function openReceiver(folder: string): Promise<Target> {
  const file = join(folder, 'copy.db')
  const port = await findFreePort()
  const start = async (): Promise<ChildProcess> => {
    const input = { dist: join(buildPackage(), 'dist'), file, port, secret: SECRET }
    const started = fork(join(import.meta.dirname, 'receiver-process.mjs'), [JSON.stringify(input)])
    await once(started, 'message')
    return started
  }
  let receiver = await start()
  const kill = async (): Promise<void> => {
    const exited = once(receiver, 'exit')
    receiver.kill('SIGKILL')
    await exited
  }
  onTestFinished(kill)
  return {
    options: { url: `http://127.0.0.1:${port}/`, secret: SECRET },
    async restart() {
      await kill()
      receiver = await start()
    },
    *read() {
      const db = new DatabaseSync(file)
      try {
        for (const row of db.prepare('select key, sequence, record from things').iterate())
          yield [String(row['key']), Number(row['sequence']), row['record'] as string | null]
      } finally {
        db.close()
      }
    },
  }
}

/** The brokers keep everything in memory, so only the appliers are killed. */
async function openBrokers(): Promise<Target> {
  const simulator = new KafkaSimulator({ clock: systemClock }, { brokers: 2 })
  const brokers = await simulator.listen()
  onTestFinished(() => simulator.close())
  return {
    options: { brokers, partitions: 3 },
    *read() {
      const isMirror = simulator.topics.configs('things')?.['cleanup.policy'] === 'compact'
      const rows = new Map<string, readonly [string, number, string]>()
      for (const { key, value, headers } of readMessages(simulator, 'things')) {
        const sequence = Number(headers['sequence'])
        if (!isMirror) yield [key, sequence, value]
        else if (value === null) rows.delete(key)
        else rows.set(key, [key, sequence, value])
      }
      yield* rows.values()
    },
  }
}

async function readStore(bench: DestinationBench): Promise<Array<readonly [string, number, string | null]>> {
  const rows = await bench.store.rows({ database: 'things', limit: 10_000_000 })
  return rows.map(({ key, sequence, text }) => [key, sequence, text] as const)
}

async function readLog(bench: DestinationBench): Promise<Array<readonly [string, number, string | null]>> {
  const log = await bench.store.changes({ after: 0, limit: 10_000_000 })
  return log.map(({ key, sequence, text }) => [key, sequence, text] as const)
}

/** The count, and a sum of the hashes of all rows: independent of their order, but not of their number. */
function digest(rows: Iterable<readonly [string, number, string | null]>): { count: number; hash: string } {
  let [count, sum] = [0, 0n]
  for (const row of rows) {
    count++
    sum += createHash('sha256').update(JSON.stringify(row)).digest().readBigUInt64LE()
  }
  return { count, hash: BigInt.asUintN(128, sum).toString(16) }
}

/** The memory of the appliers, which stays the same however many rows there are. */
class Memory {
  maxMb = 0
  readonly #processes: ChildProcess[] = []
  readonly #timer = setInterval(() => this.#measure(), 200)

  watch(applier: ChildProcess): void {
    this.#processes.push(applier)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #measure(): void {
    for (const { pid, exitCode, signalCode } of this.#processes) {
      if (exitCode !== null || signalCode !== null) continue
      try {
        const kb = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
        this.maxMb = Math.max(this.maxMb, Math.round(Number(kb ?? 0) / 1_024))
      } catch {
        // It ended in the meantime.
      }
    }
  }
}
