import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, inject, test } from 'vitest'
import type { CycleRecord, Store } from '../../../src/contract/index.ts'
import { registerService } from '../../../src/runner/restate/register-service.ts'
import { syncRef, RunnerCaseFixture } from '../../../src/testing/runner-cases/harness.ts'
import { SourceServerFixture } from '../../../src/testing/runner-cases/source-server-fixture.ts'
import { seededRandom } from '../../../src/testing/store-cases/harness.ts'
import { createDatabase, dropDatabase } from '../../setup/postgres-server.ts'
import { expectLanded, expectLeasesInOrder, expectLog, ProcessFreezer, untilNone } from '../chaos.ts'
import { FleetHarness } from '../fleet-harness.ts'
import { Balancer } from './balancer.ts'
import { RestateCluster } from './cluster.ts'

const postgres = inject('postgresUrl')
/** `npm run chaos:restate` runs the long version, on one node and then on three. */
const SECONDS = Number(process.env['TIDEMARK_CHAOS_SECONDS'] ?? 6)
const SYNCS = Number(process.env['TIDEMARK_CHAOS_SYNCS'] ?? 12)
const NODES = (process.env['TIDEMARK_CHAOS_NODES'] ?? '1').split(',').map(Number) as Array<1 | 3>
const SEED = Number(process.env['TIDEMARK_CHAOS_SEED'] ?? Date.now() % 1e9)
const IS_LONG = SECONDS >= 60
const PROCESSES = 3
const MINUTE = 60_000
/** Processes of one machine agree on the database's clock within the duration of its response. */
const CLOCK_MS = 150
/** An unresponsive worker is given up after three seconds instead of a minute. */
const SETTINGS = {
  RESTATE_WORKER__INVOKER__HTTP2_KEEP_ALIVE_INTERVAL: '1s',
  RESTATE_WORKER__INVOKER__HTTP2_KEEP_ALIVE_TIMEOUT: '2s',
}

describe.skipIf(postgres === '').each(NODES)(
  'Restate on %i node(s), killed at random like the workers it calls',
  (nodes) => {
    test(
      'XA11, XB18: loses and duplicates nothing, resumes cycles, keeps slots, and rejects stale commits',
      async () => {
        const folder = mkdtempSync(join(tmpdir(), 'tidemark-chaos-'))
        const database = await createDatabase(postgres)
        const stage = await SourceServerFixture.open()
        const fleet = await FleetHarness.open(database, stage.url)
        const freezer = new ProcessFreezer(fleet, database, folder)
        const cluster = await RestateCluster.start(nodes, SETTINGS)
        // Both check health before they forward, as load balancers do.
        const workers = await Balancer.open(() =>
          [...fleet.urls].filter(([{ pid }]) => !freezer.frozen.has(pid!)).map(([, url]) => url),
        )
        const ingress = await Balancer.open(() =>
          cluster.nodes
            .filter(({ isRunning: isAlive, pid }) => isAlive && !freezer.frozen.has(pid))
            .map((node) => node.ingress),
        )
        const random = seededRandom(SEED)
        const pick = (count: number): number => Math.floor(random() * count)
        const scheduled = Array.from({ length: Math.floor(SYNCS * 0.4) }, (_, i) => `s${i}`)
        const continuous = Array.from({ length: SYNCS - scheduled.length }, (_, i) => `c${i}`)
        const names = [...continuous, ...scheduled]
        // Changes after the last slot of a short run would be committed a minute later.
        const changing = IS_LONG ? names : continuous
        const options = {
          concurrency: 8,
          leaseMs: 30_000,
          tenants: ['default'],
          continuous: continuous.length,
          scheduled: scheduled.length,
          manual: 0,
          ingress: ingress.url,
          commits: freezer.commits,
          freezing: freezer.freezing,
        }
        const counts = { workers: 0, nodes: 0, frozenNodes: 0, changes: 0 }
        const starting: Array<Promise<void>> = []
        /** Returns a worker that is not suspended. */
        const someWorker = (): ChildProcess | undefined => {
          const awake = [...fleet.members].filter(({ pid }) => !freezer.frozen.has(pid!))
          return awake[pick(awake.length)]
        }
        const killWorker = async (member: ChildProcess): Promise<void> => {
          counts.workers++
          await fleet.kill(member)
          starting.push(fleet.start({ ...options, processes: 1 }))
        }
        /** One disturbance at a time. */
        let disturbed = false
        const disturbNode = async (): Promise<void> => {
          disturbed = true
          const index = pick(nodes)
          const node = cluster.nodes[index]!
          if (nodes > 1 && random() < 0.5) {
            counts.frozenNodes++
            node.suspend()
            const thawing = sleep(1_000 + pick(7_000))
            freezer.hold(node.pid, thawing, () => node.resume())
            await thawing
          } else {
            counts.nodes++
            await node.kill()
            await sleep(pick(3_000))
            await cluster.restart(index)
          }
          disturbed = false
        }
        try {
          stage.setBehaviour({ pageMs: 30 })
          for (const name of names) for (let row = 0; row < 15; row++) stage.table(name).put(row, 0)
          // Slots of every minute since the last become due one after the other during the kills; those of every full
          // minute at once.
          for (const [index, sync] of scheduled.entries())
            await new RunnerCaseFixture(fleet, stage).recordCycleAt(
              sync,
              Date.now() - MINUTE + (index % 2 === 0 ? 1_000 + pick(SECONDS * 1_000) : 0),
            )
          for (const sync of ['c0', 'c1']) {
            for (let row = 100; row < 160; row++) stage.table(sync).put(row, row)
            stage.setBehaviour({ pageMs: 250 }, sync)
          }
          await fleet.start({ ...options, processes: PROCESSES })
          await registerService(cluster.nodes[0]!.admin, workers.url)

          // During a cycle: first the process that runs it, then the Restate server. Then a process is suspended before a
          // commit until another has taken over.
          const first = await inTheMiddle(stage, 'c0')
          await killWorker([...fleet.members].find(({ pid }) => String(pid) === first.process)!)
          const second = await inTheMiddle(stage, 'c1')
          await Promise.all(cluster.nodes.map((node) => node.kill()))
          await Promise.all(cluster.nodes.map((_, index) => cluster.restart(index)))
          counts.nodes += nodes
          freezer.begin()
          await untilNone(async () => (freezer.stale > 0 ? 0 : 1))

          const end = performance.now() + SECONDS * 1_000
          for (let turn = 1; performance.now() < end; turn++) {
            for (let i = 0; i < SYNCS / 6; i++, counts.changes++)
              stage.table(changing[pick(changing.length)]!).put(pick(20), random() < 0.2 ? null : turn * 1_000 + i)
            await sleep(300 + pick(1_200))
            const act = random()
            const worker = someWorker()
            if (act < 0.35 && worker !== undefined) await killWorker(worker)
            else if (act < 0.5 && worker !== undefined) freezer.freeze(worker, sleep(500 + pick(5_000)))
            else if (!disturbed) starting.push(disturbNode())
          }
          await freezer.end()
          for (let all = 0; all < starting.length;) await Promise.all(starting.slice(all, (all = starting.length)))
          const quietAt = Date.now()

          const unserved = async (): Promise<string[]> =>
            (await cyclesOf(fleet.store, scheduled))
              .filter(([, cycles]) => !hasServed(cycles, quietAt))
              .map(([sync]) => sync)
          await untilNone(async () => (await unserved()).length)
          expect(await unserved(), await standingsOf(fleet.store, cluster, await unserved())).toEqual([])
          const convergedMs = await expectLanded(fleet.store, stage, names, (stuck) =>
            standingsOf(fleet.store, cluster, stuck),
          )
          await fleet.stop()
          const slots = (await cyclesOf(fleet.store, scheduled)).map(([sync, own]) => expectSlots(sync, own))

          for (const { cycle, process } of [first, second]) {
            const record = (await fleet.store.cycles(null, { limit: 1_000_000 })).find((one) => one.cycle === cycle)!
            expect({ cycle, stopReason: record.stopReason }).toEqual({ cycle, stopReason: 'complete' })
            expect(record.pages, `${record.sync} began anew`).toBeGreaterThanOrEqual(7)
            if (process === first.process)
              expect(
                stage.requests.some((asked) => asked.cycle === cycle && asked.process !== process),
                'another went on with it',
              ).toBe(true)
          }
          const log = await expectLog(fleet.store, stage, names)
          const leases = await expectLeasesInOrder(fleet.store)
          const { commits, stale, refused } = freezer.expectRefused()
          console.info(
            `seed ${SEED}: ${nodes} node(s), ${PROCESSES} workers, ${SYNCS} syncs, ${SECONDS} s: ${counts.workers} workers and ${counts.nodes} nodes killed, ${counts.frozenNodes} nodes and ${freezer.count - counts.frozenNodes} workers frozen, ` +
              `${stage.requests.length} requests, ${stage.overlaps.length} of them beside another, ${resumed(stage)} cycles taken up by another process, ${commits} commits, ${stale} tried after a take-over, ${refused} refused as stale, ` +
              `${log.length} entries in the log of ${counts.changes + SYNCS * 15} changes, ${slots.reduce((sum, count) => sum + count, 0)} slots served, ${Math.max(...leases.values())} leases of one sync at most, all equal after ${(convergedMs / 1_000).toFixed(1)} s`,
          )
        } catch (error) {
          throw new Error(`seed ${SEED}: ${error instanceof Error ? error.message : String(error)} ${fleet.errors}`, {
            cause: error,
          })
        } finally {
          for (const member of fleet.members) member.kill('SIGCONT')
          await fleet.close()
          await cluster.close()
          await Promise.all([workers.close(), ingress.close(), stage.close()])
          await dropDatabase(postgres, database)
          rmSync(folder, { recursive: true, force: true })
        }
      },
      30 * MINUTE,
    )
  },
)

/** Waits until a cycle is in progress and some pages are read; returns the cycle and its process. */
async function inTheMiddle(stage: SourceServerFixture, sync: string): Promise<{ cycle: number; process: string }> {
  for (;;) {
    const last = stage.requestsOf(sync).at(-1)
    if (last !== undefined && stage.requestsOf(sync).filter(({ cycle }) => cycle === last.cycle).length >= 3)
      return last
    await sleep(20)
  }
}

async function cyclesOf(store: Store, syncs: readonly string[]): Promise<Array<[string, CycleRecord[]]>> {
  return await Promise.all(
    syncs.map(async (sync): Promise<[string, CycleRecord[]]> => [
      sync,
      (await store.cycles(syncRef(sync), { limit: 1_000 })).toSorted((a, b) => a.startedAt - b.startedAt),
    ]),
  )
}

/** The state of stuck syncs in the registry and in Restate. */
async function standingsOf(store: Store, { nodes }: RestateCluster, syncs: readonly string[]): Promise<string> {
  const query = async (text: string): Promise<unknown> => {
    const answer = await fetch(`${nodes[0]!.admin}/query`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({ query: text }),
    })
    return ((await answer.json()) as { rows: unknown }).rows
  }
  const facts = await Promise.all(
    syncs.map(async (sync) => ({
      sync,
      now: new Date(),
      checkpoint: await store.readCheckpoint(syncRef(sync)),
      cycles: (await store.cycles(syncRef(sync), { limit: 2 })).map(
        ({ cycle, startedAt, endedAt, stopReason, error }) => ({ cycle, startedAt, endedAt, stopReason, error }),
      ),
      calls: await query(
        `select id, target_handler_name, status, created_at, scheduled_start_at, retry_count, last_failure, modified_at from sys_invocation where target_service_key = 'default/${sync}' and status != 'completed'`,
      ),
      kept: await query(`select key, value_utf8 from state where service_key = 'default/${sync}'`),
    })),
  )
  return JSON.stringify(facts)
}

/** In the long run, a slot after the disturbances; in the short one, the slot during them. */
function hasServed(cycles: readonly CycleRecord[], quietAt: number): boolean {
  const last = cycles.at(-1)
  return last?.stopReason === 'complete' && (IS_LONG ? last.startedAt >= quietAt : cycles.length > 1)
}

/** Expects that no slot ran twice or early; returns their number. */
function expectSlots(sync: string, cycles: readonly CycleRecord[]): number {
  const isInterval = Number(sync.slice(1)) % 2 === 0
  for (const [index, { startedAt }] of cycles.entries()) {
    const before = cycles[index - 1]
    if (before === undefined) continue
    if (isInterval)
      expect(startedAt - before.startedAt, `${sync}, its ${index + 1}th cycle`).toBeGreaterThanOrEqual(
        MINUTE - CLOCK_MS,
      )
    else
      expect(Math.floor((startedAt + CLOCK_MS) / MINUTE), `${sync}, its ${index + 1}th cycle`).toBeGreaterThan(
        Math.floor((before.startedAt + CLOCK_MS) / MINUTE),
      )
  }
  return cycles.length
}

function resumed(stage: SourceServerFixture): number {
  const processes = new Map<number, Set<string>>()
  for (const { cycle, process } of stage.requests)
    processes.set(cycle, (processes.get(cycle) ?? new Set()).add(process))
  return [...processes.values()].filter(({ size }) => size > 1).length
}
