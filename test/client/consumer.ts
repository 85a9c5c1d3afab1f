import {
  changeKey,
  createClient,
  type Change,
  type ClientOptions,
  type Checkpoint,
  type Client,
  type ReaderPosition,
} from '../../src/client/index.ts'
import type { JsonObject, Ports, Store } from '../../src/contract/index.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { readFeed, readLiveRows } from '../../src/testing/store-cases/harness.ts'
import type { ServerFixture } from '../server/server-fixture.ts'

/** A consumer's copy of the feed: the received changes and the resulting rows. */
export class Copy {
  readonly rows = new Map<string, JsonObject>()
  /** In processing order, without redelivered changes. */
  readonly done: string[] = []
  readonly #keys = new Set<string>()
  deliveries = 0

  take(change: Change): void {
    this.deliveries++
    const key = changeKey(change)
    if (this.#keys.has(key)) return
    this.#keys.add(key)
    this.done.push(`${change.action} ${change.database}/${change.resourceId}`)
    const at = `${change.database}/${change.resourceId}`
    if (change.action === 'deleted') this.rows.delete(at)
    else this.rows.set(at, change.snapshot)
  }

  /** A fresh start: earlier changes no longer count. */
  forget(): void {
    this.#keys.clear()
  }
}

/** The expected result of a reader from the start. */
export async function expected(
  store: Store,
  database: string,
): Promise<{ done: string[]; rows: Map<string, JsonObject> }> {
  const entries = (await readFeed(store)).filter((entry) => entry.database === database)
  return {
    done: entries.map((entry) => `${entry.action} ${entry.database}/${entry.key}`),
    rows: new Map(
      (await readLiveRows(store, database)).map(([key, record]) => [`${database}/${key}`, record as JsonObject]),
    ),
  }
}

/** Stores positions as text, like a file, and can simulate a crash. */
export class MemoryCheckpoint implements Checkpoint {
  text: string | null = null
  saves = 0
  /** Called before the nth save is stored. */
  onSave: (nth: number) => void = () => {}

  async load(): Promise<ReaderPosition | null> {
    return this.text === null ? null : (JSON.parse(this.text) as ReaderPosition)
  }

  async save(position: ReaderPosition): Promise<void> {
    this.onSave(++this.saves)
    this.text = JSON.stringify(position)
  }
}

/** Waits take no time and are recorded; the server's clock advances with them. */
export function clientOf(
  stand: ServerFixture,
  options: Partial<ClientOptions> = {},
): { client: Client; waits: number[] } {
  const waits: number[] = []
  const client = createClient({
    url: stand.url,
    key: stand.key,
    clock: {
      now: () => Date.now() + stand.shift.ms,
      async sleep(ms, signal) {
        signal?.throwIfAborted()
        waits.push(ms)
        stand.shift.ms += ms
        await new Promise((resolve) => setTimeout(resolve, 1))
      },
    },
    ...options,
  })
  return { client, waits }
}

export type ResponseInterceptor = (response: Response, url: URL) => Response | Promise<Response>

/** The real network with an interceptor. */
export function interceptFetch(meddle: ResponseInterceptor): typeof fetch {
  return async (input, init) => meddle(await fetch(input, init), new URL(input as string))
}

export async function takeUntil(changes: AsyncIterable<Change>, copy: Copy, count: number): Promise<void> {
  if (copy.done.length >= count) return
  for await (const change of changes) {
    copy.take(change)
    if (copy.done.length >= count) return
  }
}

/** For another server of the same fixture. */
export function portsOf({ shift }: Pick<ServerFixture, 'shift'>): Ports {
  const ignore = (): void => {}
  return {
    clock: { now: () => systemClock.now() + shift.ms, sleep: (ms, signal) => systemClock.sleep(ms, signal) },
    random: systemRandom,
    log: { debug: ignore, info: ignore, warn: ignore, error: ignore },
  }
}
