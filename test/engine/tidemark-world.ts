import type { Change, Execute, Mode, Page, Store } from '../../src/contract/index.ts'
import type * as engine from '../../src/engine/cycle.ts'
import type * as strategies from '../../src/strategies/index.ts'
import { RandomStream } from '../../src/testing/simulation/random-stream.ts'
import { canonicalizeInstant } from '../../src/values/instant.ts'
import { Table, type TableRow } from '../strategies/table.ts'
import { planOf, EngineFixture, storeWith } from './engine-fixture.ts'

/** The code under test: unchanged, or with a planted bug. */
export type Code = Pick<typeof engine, 'runCycle'> & Pick<typeof strategies, 'flipFlop' | 'keyset' | 'streams'>

/**
 * keyset     changes alone
 *   streams    changes and deletions in one cycle, each stating its tidemark
 *   flipFlop   the same, alternating
 *   turns      alternating by hand-written code, without a tidemark
 *   listing    all rows by id, in replace mode
 *   unordered  all rows by id, in incremental mode
 */
export type WorldKind = 'keyset' | 'streams' | 'flipFlop' | 'turns' | 'listing' | 'unordered'

const LAG_MS = 15_000
const CYCLES = 25

/** Checks invariant 12 after every commit of one world; null if it held. */
export async function runWorld(kind: WorldKind, seed: number, code: Code): Promise<string | null> {
  const scene = await EngineFixture.open()
  try {
    return await new World(kind, seed, code, scene).play()
  } finally {
    await scene.close()
  }
}

class World {
  readonly #kind: WorldKind
  readonly #code: Code
  readonly #scene: EngineFixture
  readonly #chance: RandomStream
  readonly #rows: Table
  readonly #audit: Table
  readonly #live: string[] = []
  #made = 0
  #copy = new Map<string, TableRow>()
  #broken: string | null = null

  constructor(kind: WorldKind, seed: number, code: Code, scene: EngineFixture) {
    this.#kind = kind
    this.#code = code
    this.#scene = scene
    this.#chance = new RandomStream(seed, 'tidemark')
    this.#rows = new Table(scene.clock)
    this.#audit = new Table(scene.clock)
  }

  async play(): Promise<string | null> {
    const { store, clock, ports } = this.#scene
    for (let n = 0; n < 12; n++) this.#write()
    const mode: Mode = this.#kind === 'listing' ? 'replace' : 'incremental'
    const execute = this.#source()
    const watched: Store = storeWith(store, {
      commit: async (commit) => {
        const outcome = await store.commit(commit)
        this.#copy = new Map(
          (await store.rows({ database: 'things', limit: 10_000 })).map(({ key, text }) => [
            key,
            JSON.parse(text) as TableRow,
          ]),
        )
        this.#check('stored', (await store.readCheckpoint(commit.lease.ref)).tidemark)
        return outcome
      },
    })
    for (let cycle = 0; cycle < CYCLES && this.#broken === null; cycle++) {
      clock.step(this.#chance.pick([1_000, 20_000, 60_000]))
      const pagesMax = this.#chance.pick([1, 2, 3, 100, 100])
      await clock.drive(
        this.#code.runCycle(
          planOf({ execute, mode, limits: { pagesMax, retriesMax: 0 }, sweep: { maxShare: 1, allowEmpty: true } }),
          {
            store: watched,
            ports,
            fetch: () => Promise.reject(new Error('no network here')),
            secrets: { get: (name) => name },
            holder: `run-${cycle}`,
            trigger: 'test',
            onProgress: (progress) => {
              if (progress.kind === 'landed') this.#check('shown', progress.tidemark)
            },
          },
        ),
      )
    }
    return this.#broken
  }

  /** A few writes, some with equal times and some that become visible late, and time passes. */
  #goOn(): void {
    for (let n = this.#chance.pick([0, 0, 1, 4]); n > 0; n--) this.#write()
    this.#scene.clock.step(this.#chance.pick([0, 50, 4_000]))
  }

  #write(): void {
    // An unordered read covers only what was visible when it began.
    const lateMs =
      this.#kind === 'listing' || this.#kind === 'unordered' ? 0 : this.#chance.pick([0, 0, LAG_MS - 1_000])
    const id =
      this.#live.length > 0 && this.#chance.chance(0.6)
        ? this.#chance.pick(this.#live)
        : `r${String(this.#made++).padStart(4, '0')}`
    if (!this.#live.includes(id)) this.#live.push(id)
    else if (this.#chance.chance(0.3) && this.#kind !== 'unordered' && this.#kind !== 'keyset') {
      this.#live.splice(this.#live.indexOf(id), 1)
      this.#rows.remove(id)
      this.#audit.put(id, { lateMs })
      return
    }
    this.#rows.put(id, { lateMs })
  }

  #source(): Execute<any> {
    const { keyset, streams, flipFlop } = this.#code
    const by = (table: Table, limit: number, toChange: (row: TableRow) => Change) =>
      keyset<TableRow>({
        read: async (query) => {
          const answer = await table.read(query)
          this.#goOn()
          return answer
        },
        timestamp: ({ at }) => at,
        id: ({ id }) => id,
        toChange,
        lagMs: LAG_MS,
        limit,
      })
    const changes = by(this.#rows, 2, upsertOf)
    const deletes = by(this.#audit, 5, ({ id, at }) => ({ type: 'delete', key: id, upstreamUpdatedAt: at }))
    switch (this.#kind) {
      case 'keyset':
        return changes
      case 'streams':
        return streams({ changes, deletes })
      case 'flipFlop':
        return flipFlop({ delta: changes, deletes })
      case 'turns':
        return async (state: Turn = { turn: 'changes', cursors: {} }, context) => {
          const { tidemark: _, ...page }: Page<any> = await { changes, deletes }[state.turn](
            state.cursors[state.turn],
            context,
          )
          const turn = page.hasMore ? state.turn : state.turn === 'changes' ? 'deletes' : 'changes'
          return {
            ...page,
            nextState: {
              turn,
              cursors: { ...state.cursors, ...(page.nextState !== undefined && { [state.turn]: page.nextState }) },
            },
          }
        }
      case 'listing':
      case 'unordered':
        return async (after: string | undefined, { cycle }) => {
          const from = this.#kind === 'unordered' && cycle.page === 1 ? '' : (after ?? '')
          const rows = this.#rows
            .visible()
            .filter(({ id }) => id > from)
            .toSorted((a, b) => (a.id < b.id ? -1 : 1))
            .slice(0, 3)
          this.#goOn()
          return { changes: rows.map(upsertOf), hasMore: rows.length === 3, nextState: rows.at(-1)?.id ?? from }
        }
      default:
        throw new Error(this.#kind satisfies never)
    }
  }

  #check(where: string, tidemark: string | null): void {
    if (tidemark === null || canonicalizeInstant(tidemark) === null || this.#broken !== null) return
    const isOwed = ({ at }: TableRow): boolean => canonicalizeInstant(at)! <= tidemark
    for (const row of Object.values(this.#rows.truth()).filter(isOwed)) {
      const copy = this.#copy.get(row.id)
      if (copy === undefined || copy.v < row.v)
        this.#broken = `${where} tidemark ${tidemark}: ${row.id} of ${row.at} is ${copy === undefined ? 'missing' : 'older'}`
    }
    for (const { id, at } of Object.values(this.#audit.truth()).filter(isOwed)) {
      if (this.#copy.has(id) && this.#kind !== 'turns')
        this.#broken = `${where} tidemark ${tidemark}: ${id}, deleted at ${at}, is still there`
    }
  }
}

interface Turn {
  readonly turn: 'changes' | 'deletes'
  readonly cursors: { readonly changes?: any; readonly deletes?: any }
}

function upsertOf(row: TableRow): Change {
  return { type: 'upsert', key: row.id, record: { ...row }, upstreamUpdatedAt: row.at }
}
