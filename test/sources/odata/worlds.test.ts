import { describe, expect, test } from 'vitest'
import { RandomStream } from '../../../src/testing/simulation/random-stream.ts'
import { ODataFixture } from './odata-fixture.ts'

/**
 * Small worlds in which rows change between any two requests. Each way of reading is judged by itself: a listing would hide
 * what a delta has missed.
 */
const SEEDS = Number(process.env['TIDEMARK_SEEDS'] ?? 6)
const TIMEOUT_MS = 60_000 + SEEDS * 2_000
const LAG_MS = 10_000

describe.each([4, 2] as const)('version %i', (version) => {
  test(
    'by the cursor alone: nothing that was ever visible is missed',
    async () => {
      for (let seed = 1; seed <= SEEDS; seed++) {
        const world = await World.open(version, seed)
        world.desk.follow('Orders', { pageSize: world.pageSize, lagMs: LAG_MS })
        await world.live('delta', { deletes: 0 })
        expect({ seed, rows: await world.desk.rows() }).toEqual({ seed, rows: world.desk.truth() })
        await world.desk.close()
      }
    },
    TIMEOUT_MS,
  )

  test(
    'listed alone: what is gone is swept, what lives is there',
    async () => {
      for (let seed = 1; seed <= SEEDS; seed++) {
        const world = await World.open(version, seed)
        world.desk.stage.list(world.desk.source.listing('Orders', { pageSize: world.pageSize }))
        await world.live('backfill', { deletes: 0.1 })
        expect({ seed, rows: await world.desk.rows() }).toEqual({ seed, rows: world.desk.truth() })
        await world.desk.close()
      }
    },
    TIMEOUT_MS,
  )

  test(
    'a backfill while rows change, and then the cursor alone',
    async () => {
      for (let seed = 1; seed <= SEEDS; seed++) {
        const world = await World.open(version, seed)
        world.desk.follow('Orders', { pageSize: world.pageSize, lagMs: LAG_MS })
        await world.run('backfill', { deletes: 0 })
        await world.live('delta', { deletes: 0 })
        expect({ seed, rows: await world.desk.rows() }).toEqual({ seed, rows: world.desk.truth() })
        await world.desk.close()
      }
    },
    TIMEOUT_MS,
  )
})

test(
  'by delta links alone: deletions included, and with links that expire a backfill as asked for',
  async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const world = await World.open(4, seed, true)
      world.desk.stage.track(world.desk.source.tracked('Orders', { pageSize: world.pageSize }))
      await world.live('delta', { deletes: 0.2 })
      expect({ seed, rows: await world.desk.rows() }).toEqual({ seed, rows: world.desk.truth() })
      world.desk.service.expireDeltaLinks()
      world.write(0.3)
      await world.live('delta', { deletes: 0.2 })
      expect({ seed, rows: await world.desk.rows() }).toEqual({ seed, rows: world.desk.truth() })
      await world.desk.close()
    }
  },
  TIMEOUT_MS,
)

class World {
  readonly desk: ODataFixture
  readonly pageSize: number
  readonly #random: RandomStream
  /** When the last write of a row becomes visible. No other may come before that, or the older one would be the last to appear. */
  readonly #showsAt = new Map<string, number>()
  readonly #step: number
  #writes = 0

  private constructor(desk: ODataFixture, random: RandomStream) {
    this.desk = desk
    this.#random = random
    this.pageSize = this.#whole(1, 5)
    this.#step = this.#pick([1, 1_000])
    for (let n = 0; n < 12; n++) this.write(0)
  }

  static async open(version: 2 | 4, seed: number, byLinks = false): Promise<World> {
    const random = new RandomStream(seed, `odata ${version}`)
    const pick = <T>(...of: T[]): T => of[Math.floor(random.next() * of.length)]!
    const desk = await ODataFixture.open(
      version,
      {
        ...pick<object>(
          {},
          { pageSizeMax: 1 },
          { pageSizeMax: 3 },
          byLinks ? {} : { topMax: 1 },
          byLinks ? {} : { topMax: 2 },
        ),
        // Links that count rows, and orders that change, are only for methods that rely on neither.
        ...(byLinks
          ? {
              removedAs: pick<'@removed' | '$deletedEntity'>('@removed', '$deletedEntity'),
              relativeLinks: pick(true, false),
            }
          : {
              skipToken: pick<'keyset' | 'offset'>('keyset', 'offset'),
              ties: pick<'key' | 'shuffled'>('key', 'shuffled'),
            }),
      },
      seed,
    )
    return new World(desk, random)
  }

  /** Cycles while rows change; then a quiet one. */
  async live(half: 'backfill' | 'delta', { deletes }: { deletes: number }): Promise<void> {
    for (let cycles = 0; cycles < 3; cycles++) await this.run(half, { deletes })
    this.desk.service.faults.clear()
    this.desk.stage.pass(10 * LAG_MS)
    await this.#toEnd(half, () => {})
  }

  async run(half: 'backfill' | 'delta', { deletes }: { deletes: number }): Promise<void> {
    this.desk.service.faults.injectAtRates([
      [{ kind: 'server-error' }, 0.05],
      [{ kind: 'truncated' }, 0.05],
      [{ kind: 'rate-limit', retryAfter: '1' }, 0.03],
      [{ kind: 'short-page' }, 0.05],
    ])
    await this.#toEnd(half, () => {
      this.desk.stage.pass(this.#whole(0, 3_000))
      for (let writes = this.#whole(0, 2); writes > 0; writes--) this.write(deletes)
    })
  }

  /** Broken off by chance, and taken up again until it is over. */
  async #toEnd(half: 'backfill' | 'delta', onRequest: () => void): Promise<void> {
    for (let runs = 0; runs < 200; runs++) {
      // In the end the writing stops: a listing of rows that are added faster than they are read is never over.
      const { stopReason, error } = await this.desk.stage[half]({
        afterMs: this.#whole(0, 20_000),
        pagesMax: this.#whole(1, 8),
        retriesMax: 4,
        onRequest: runs < 20 ? onRequest : () => {},
      })
      if (stopReason === 'complete') return
      if (error?.code === 'HISTORY_LOST') await this.#toEnd('backfill', onRequest)
      else if (
        error !== null &&
        !['SOURCE_UNAVAILABLE', 'SOURCE_INVALID', 'RATE_LIMITED', 'MASS_DELETE'].includes(error.code)
      )
        throw new Error(`${error.code}: ${error.message}`)
    }
    throw new Error('it does not end')
  }

  /** One row is added or changed, now or a while later; or one is deleted. */
  write(deletes: number): void {
    const { desk } = this
    const id = String(this.#whole(1, 25))
    if ((this.#showsAt.get(id) ?? 0) > desk.now) return
    const exists = desk.truth()[id] !== undefined
    if (exists && this.#random.next() < deletes) return desk.service.remove('Orders', { Id: id })
    const afterMs = this.#random.next() < 0.3 ? this.#whole(0, LAG_MS - 1) : 0
    const stamp = desk.now - (desk.now % this.#step)
    this.#showsAt.set(id, desk.now + afterMs)
    desk.order(id, `w${++this.#writes}`, {
      at: desk.moment(stamp, this.#step === 1 ? this.#whole(0, 9_999) : 0),
      afterMs,
    })
  }

  #pick<T>(of: readonly T[]): T {
    return of[this.#whole(0, of.length - 1)]!
  }

  #whole(from: number, to: number): number {
    return from + Math.floor(this.#random.next() * (to - from + 1))
  }
}
