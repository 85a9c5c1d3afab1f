import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStore } from '../../src/stores/open-store.ts'
import { RandomStream } from '../../src/testing/simulation/random-stream.ts'
import { AlchemySimulator } from '../../simulators/src/indexers/alchemy-simulator.ts'
import { FakeChain } from '../../simulators/src/indexers/fake-chain.ts'
import { GithubStarsSimulator, serve, XSimulator, type SimulatorPorts } from '../../simulators/src/index.ts'
import type { Simulator } from '../../simulators/src/kit/simulator.ts'
import { KRAKEN_CREDENTIALS, KrakenSimulator } from '../../simulators/src/kraken/simulator.ts'
import { buildPackage, type Build } from '../process/build.ts'
import { Child, killChildren } from '../process/child.ts'
import { createSqliteFixture, type ProcessStoreFixture } from '../process/process-store-fixture.ts'
import { change, differences, fill, RunClock } from './vendor-run.ts'
import { VENDORS, type Counts } from './vendors.ts'

/**
 * Runs every source in a separate process that is killed with SIGKILL while a page lands and the next one is requested.
 */
const COUNTS: Counts = { records: 1_000, updated: 240, created: 30, deleted: 30 }

/** A source and its system, on a movable clock. */
interface Subject {
  readonly simulator: Simulator
  /** The first cycle, then those that read the changes. */
  readonly first: string
  readonly follow: readonly string[]
  readonly input?: Readonly<Record<string, unknown>>
  change(): void
  /** Expected number of log entries: nothing landed twice. */
  readonly entries: number
  /** Differences between the rows and the source. */
  differences(store: string): Promise<string[]>
}

const SUBJECTS: Record<string, (ports: SimulatorPorts, clock: RunClock) => Subject> = {
  ...Object.fromEntries(
    VENDORS.filter(({ name }) => name !== 'hubspot (import)').map((vendor) => [
      vendor.name,
      (ports: SimulatorPorts, clock: RunClock): Subject => {
        const simulator = vendor.make(ports)
        const ids = fill(vendor, simulator, clock, COUNTS)
        return {
          simulator,
          first: vendor.backfill.sync,
          follow: vendor.follow.map(({ sync }) => sync),
          input: { limit: 100 },
          change: () => change(vendor, simulator, clock, ids, COUNTS),
          entries: COUNTS.records + COUNTS.updated + COUNTS.created + COUNTS.deleted,
          differences: (store) => differences(store, vendor, simulator),
        }
      },
    ]),
  ),
  bookmarks(ports, clock) {
    const simulator = new XSimulator(ports)
    const add = (): void => every(clock, 300, () => simulator.create('bookmark', { text: 'a post' }))
    add()
    return {
      ...appended(simulator, add, () => simulator.truth('bookmark').map(({ id }) => String(id)), 600),
      first: 'follow',
      follow: ['follow'],
      input: { options: { userId: simulator.user.id } },
    }
  },
  'github-stars'(ports, clock) {
    const simulator = new GithubStarsSimulator(ports)
    const add = (): void => every(clock, 400, () => simulator.create('star'))
    add()
    return {
      ...appended(
        simulator,
        add,
        () => simulator.truth('star').map(({ repo }) => String((repo as { id: number }).id)),
        800,
      ),
      first: 'follow',
      follow: ['follow'],
    }
  },
  kraken(ports, clock) {
    const simulator = new KrakenSimulator(ports)
    const add = (): void => every(clock, 120, () => simulator.addFill())
    add()
    const options = { secrets: { KRAKEN_KEY: KRAKEN_CREDENTIALS.key, KRAKEN_SECRET: KRAKEN_CREDENTIALS.secret } }
    return {
      ...appended(simulator, add, () => simulator.records.current('ledger').map(({ id }) => id), 480),
      first: 'list',
      follow: ['list'],
      input: { options },
    }
  },
  evm(ports, clock) {
    const [address, other] = [`0x${'aa'.repeat(20)}`, `0x${'bb'.repeat(20)}`]
    const chain = new FakeChain(ports)
    const add = (): void =>
      every(clock, 120, () =>
        chain.mine([
          { from: other, to: address, value: 1n },
          { from: address, to: other, value: 2n },
        ]),
      )
    add()
    const simulator = new AlchemySimulator(ports, chain)
    return {
      ...appended(
        simulator,
        add,
        () => chain.blocks.flatMap(({ transactions }) => transactions.map(({ hash }) => hash)),
        480,
      ),
      first: 'list',
      follow: ['list'],
      input: { limit: 40, options: { address } },
    }
  },
}

/** Append-only data is compared by its keys. */
function appended(
  simulator: Simulator,
  add: () => void,
  keys: () => string[],
  entries: number,
): Pick<Subject, 'simulator' | 'change' | 'entries' | 'differences'> {
  return {
    simulator,
    change: add,
    entries,
    async differences(url) {
      const store = await openStore(url)
      const landed = new Set((await store.rows({ database: 'records', limit: 10_000 })).map(({ key }) => key))
      await store.close()
      const wanted = keys()
      return [...wanted.filter((key) => !landed.delete(key)), ...landed].slice(0, 10)
    },
  }
}

/** One a second, and then long enough ago to be outside every source's lag. */
function every(clock: RunClock, count: number, act: () => void): void {
  const from = clock.now()
  for (let n = 0; n < count; n++) {
    clock.stand(from + 1_000 * (n + 1))
    act()
  }
  clock.run(from + 1_000 * (count + 600) - Date.now())
}

let build: Build
let stand: ProcessStoreFixture
beforeAll(async () => {
  build = await buildPackage()
  stand = createSqliteFixture()
})
afterAll(async () => {
  killChildren()
  await stand.remove()
  build.remove()
})

test.each(Object.keys(SUBJECTS))(
  'R6 R50 %s: killed inside its first cycle and inside the one that follows, it resumes; everything lands, and nothing twice',
  async (name) => {
    const clock = new RunClock()
    const subject = SUBJECTS[name]!({ clock, random: new RandomStream(1, name) }, clock)
    let [left, strike] = [Infinity, (): void => {}]
    await using server = await serve({
      handle: async (request) => {
        // The previous page is being landed.
        if (--left === 0) {
          strike()
          return await new Promise<never>(() => {})
        }
        return await subject.simulator.handle(request)
      },
    })
    const store = await stand.fresh()
    const live = (): Child =>
      new Child(build, '../../runs/measured.mjs', {
        input: { vendor: name.split(' ')[0], url: server.url, store, ...subject.input },
      })
    const killed = async (child: Child, sync: string, request: number): Promise<number> => {
      left = request
      strike = () => child.signal('SIGKILL')
      child.tell(JSON.stringify({ sync, aheadMs: clock.aheadMs }))
      expect((await child.ended).signal).toBe('SIGKILL')
      const { committed, page } = await stand.look(store, async (opened) => {
        const { version, inflight } = await opened.readCheckpoint({ worker: 'run', sync })
        return { committed: version, page: inflight?.page ?? null }
      })
      expect(page).not.toBeNull()
      return committed
    }
    const completed = async (child: Child, sync: string): Promise<void> => {
      const before = child.said.length
      child.tell(JSON.stringify({ sync, aheadMs: clock.aheadMs }))
      expect(await child.until('cycle', (said) => child.said.indexOf(said) >= before)).toMatchObject({
        stopReason: 'complete',
      })
    }

    expect(await killed(live(), subject.first, 4)).toBe(0)
    const heir = live()
    await completed(heir, subject.first)
    expect(await subject.differences(store)).toEqual([])

    subject.change()
    expect(await killed(heir, subject.follow[0]!, 2)).toBe(1)
    const last = live()
    for (const sync of subject.follow) await completed(last, sync)
    await last.kill()
    expect(await subject.differences(store)).toEqual([])
    expect(await stand.look(store, (opened) => opened.headSequence())).toBe(subject.entries)
  },
)
