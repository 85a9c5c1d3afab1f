import { isDeepStrictEqual } from 'node:util'
import { describe, expect, test } from 'vitest'
import type { Execute, SyncContext } from '../../src/contract/index.ts'
import { flipFlop, keyset, type KeysetOptions } from '../../src/strategies/index.ts'
import { MINUTE, EngineFixture, SECOND } from '../engine/engine-fixture.ts'
import { EventLog, feedOf } from './event-log.ts'
import { SearchIndex, searchOf } from './search-index.ts'
import { runOn } from './run-strategy.ts'
import { keysetOf, Table, type TableRow } from './table.ts'

/**
 * Worlds drawn from a seed: rows change while they are read, show up late, share timestamps; answers take their time, runs are
 * broken off after any page. Judged by deltas alone: in the end the copy is the source.
 */
const WORLDS = 15

class Dice {
  #state: number

  constructor(seed: number) {
    this.#state = (seed * 2_654_435_761 + 1) >>> 0
  }

  /** From 0 to n - 1. */
  roll(n: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((this.#state / 2 ** 32) * n)
  }
}

interface World {
  readonly scene: EngineFixture
  readonly dice: Dice
  readonly lateMaxMs: number
  readonly grainMs: number
  readonly limit: number
  /** How late the next row shows up. */
  late(): number
  /** While an answer is under way, time passes and things happen; in the end, nothing does any more. */
  pause(context: SyncContext, happen: () => void): Promise<void>
}

interface Subject {
  /** Something happens to the source. */
  happen(): void
  readonly execute: Execute<any>
  truth(): unknown
}

async function play(seed: number, build: (world: World) => Subject): Promise<{ copy: unknown; truth: unknown }> {
  const dice = new Dice(seed)
  let calm = false
  const scene = await EngineFixture.open()
  const lateMaxMs = [0, 3, 8][dice.roll(3)]! * SECOND
  const world: World = {
    scene,
    dice,
    lateMaxMs,
    grainMs: [1, SECOND, 5 * SECOND][dice.roll(3)]!,
    limit: 2 + dice.roll(6),
    late: () => (dice.roll(10) < 7 ? 0 : dice.roll(lateMaxMs + 1)),
    pause: async ({ clock, signal }, happen) => {
      await clock.sleep([0, 50, 2_000, 12_000][dice.roll(4)]!, signal)
      if (!calm && dice.roll(3) === 0) happen()
    },
  }
  const subject = build(world)
  for (let round = 0; round < 25; round++) {
    for (let count = dice.roll(8); count > 0; count--) {
      subject.happen()
      if (dice.roll(3) === 0) scene.clock.step(dice.roll(4) * SECOND)
    }
    await runOn(scene, subject.execute, {
      afterMs: [0, 1, 7, 60][dice.roll(4)]! * SECOND,
      ...(dice.roll(2) === 0 && { pagesMax: 1 + dice.roll(3) }),
    })
  }
  calm = true
  for (let round = 0; round < 4; round++) {
    const result = await runOn(scene, subject.execute, { afterMs: 2 * MINUTE })
    expect(result.stopReason, `world ${seed}: ${result.error?.message ?? ''}`).toBe('complete')
  }
  const copy = await scene.rows()
  await scene.close()
  return { copy, truth: subject.truth() }
}

async function playAll(build: (world: World) => Subject): Promise<void> {
  for (let seed = 1; seed <= WORLDS; seed++) {
    const { copy, truth } = await play(seed, build)
    expect(copy, `world ${seed}`).toEqual(truth)
  }
}

/** The first world in which the copy is not the source; rare ones are worth looking for. */
async function findWrong(build: (world: World) => Subject): Promise<number | null> {
  for (let seed = 1; seed <= 10 * WORLDS; seed++) {
    const { copy, truth } = await play(seed, build)
    if (!isDeepStrictEqual(copy, truth)) return seed
  }
  return null
}

function tableWorld(
  world: World,
  options: (safe: Partial<KeysetOptions<TableRow>>) => Partial<KeysetOptions<TableRow>> = (safe) => safe,
): Subject {
  const table = new Table(world.scene.clock)
  const stamp = (): string => new Date(Math.floor(table.now() / world.grainMs) * world.grainMs).toISOString()
  const happen = (): void => table.put(`r${world.dice.roll(40)}`, { at: stamp(), lateMs: world.late() })
  return {
    happen,
    truth: () => table.truth(),
    execute: keysetOf(
      table,
      options({
        limit: world.limit,
        lagMs: world.lateMaxMs + world.grainMs,
        read: async (query, context) => {
          const answer = await table.read(query)
          await world.pause(context, happen)
          return answer
        },
      }),
    ),
  }
}

describe('keyset', () => {
  test('N9 N25 in every world the copy becomes the source', () => playAll((world) => tableWorld(world)))
  test('as a control, without the lag it does not', async () => {
    expect(await findWrong((world) => tableWorld(world, (safe) => ({ ...safe, lagMs: 0 })))).not.toBeNull()
  })
  test('as a control, a horizon that moves with every page loses rows', async () => {
    // A bound reckoned when the answer is there, not before the question.
    const moving = (world: World): Subject => {
      const subject = tableWorld(world)
      return {
        ...subject,
        execute: (state, context) =>
          subject.execute(state && { ...state, untilMs: undefined }, {
            ...context,
            cycle: { ...context.cycle, startedAt: context.clock.now() + 12 * SECOND },
          }),
      }
    }
    expect(await findWrong(moving)).not.toBeNull()
  })
})

describe('search', () => {
  const indexWorld = (
    world: World,
    { lagMs = world.lateMaxMs + world.grainMs, windows = [Number.POSITIVE_INFINITY, 12], isCounted = true } = {},
  ): Subject => {
    const index = new SearchIndex(world.scene.clock)
    index.windowMax = windows[world.dice.roll(windows.length)]!
    const happen = (): void => {
      const at = Math.floor(index.now() / world.grainMs) * world.grainMs
      for (let count = world.dice.roll(12) === 0 ? 15 : 1; count > 0; count--)
        index.put(1 + world.dice.roll(60), { at, lateMs: world.late() })
    }
    return {
      happen,
      truth: () => index.truth(),
      execute: searchOf(index, {
        limit: world.limit,
        windowMax: index.windowMax,
        lagMs,
        read: async (query, context) => {
          const { items, total } = await index.read(query)
          await world.pause(context, happen)
          return { items, ...(isCounted && { total: total! }) }
        },
      }),
    }
  }
  test('N53 XC8 XC9 in every world the copy becomes the source', () => playAll((world) => indexWorld(world)))
  test('as a control, without the lag it does not', async () => {
    // A count that grows would give most of what comes late away.
    expect(
      await findWrong((world) =>
        indexWorld(world, { lagMs: 0, windows: [Number.POSITIVE_INFINITY], isCounted: false }),
      ),
    ).not.toBeNull()
  })
})

describe('eventFeed', () => {
  const logWorld = (world: World, lagMs = world.lateMaxMs + SECOND): Subject => {
    const log = new EventLog(world.scene.clock)
    log.change('first')
    // The sync notes its anchor before anything else happens.
    let anchored = false
    const happen = (): void => {
      if (!anchored) return
      const id = `o${world.dice.roll(12)}`
      if (world.dice.roll(3) === 0 && Object.hasOwn(log.truth(), id)) log.remove(id, { lateMs: world.late() })
      else log.change(id, { lateMs: world.late() })
    }
    return {
      happen,
      truth: () => {
        const { first: _first, ...rest } = log.truth()
        return rest
      },
      execute: feedOf(log, {
        lagMs,
        anchor: async () => {
          anchored = true
          return log.newest()
        },
        read: async ({ after }, context) => {
          const { data, has_more } = log.endingBefore(after, world.limit)
          await world.pause(context, happen)
          return { events: data, hasMore: has_more }
        },
      }),
    }
  }
  test('N38 XC33 in every world the copy becomes the source', () => playAll((world) => logWorld(world)))
  test('as a control, without the lag it does not', async () => {
    expect(await findWrong((world) => logWorld(world, 0))).not.toBeNull()
  })
})

describe('flipFlop', () => {
  test('N82 XE10 in every world the copy becomes the source, deletions and all', () =>
    playAll((world) => {
      const table = new Table(world.scene.clock)
      const audit = new Table(world.scene.clock)
      const lagMs = world.lateMaxMs + SECOND
      let moment = 0
      // No two changes of one row have the same millisecond, or their order would be unknown.
      const at = (): string => new Date((moment = Math.max(moment + 1, table.now()))).toISOString()
      const happen = (): void => {
        const id = `r${world.dice.roll(15)}`
        if (world.dice.roll(3) > 0 || !Object.hasOwn(table.truth(), id))
          return table.put(id, { at: at(), lateMs: world.late() })
        table.remove(id)
        audit.put(id, { at: at(), lateMs: world.late() })
      }
      const read =
        (from: Table): KeysetOptions<TableRow>['read'] =>
        async (query, context) => {
          const answer = await from.read(query)
          await world.pause(context, happen)
          return answer
        }
      return {
        happen,
        truth: () => table.truth(),
        execute: flipFlop({
          delta: keysetOf(table, { limit: world.limit, lagMs, read: read(table) }),
          deletes: keyset<TableRow>({
            read: read(audit),
            timestamp: (row) => row.at,
            id: ({ id }) => id,
            toChange: (row) => ({ type: 'delete', key: row.id, upstreamUpdatedAt: row.at }),
            lagMs,
            limit: world.limit,
          }),
        }),
      }
    }))
})
