import type { Destination, DestinationMode, JsonObject, Ports, Store } from '../../contract/index.ts'
import { DEFAULT_LIMITS, type BatchLimits } from '../../destinations/loop/read-batches.ts'
import { runDestination, type DestinationResult } from '../../destinations/loop/run-destination.ts'
import { openSqliteStore } from '../../stores/sqlite/store.ts'
import { parseJson } from '../../values/json.ts'
import { systemClock } from '../../platform/clock.ts'
import { remove, SyncDriver, upsert } from '../store-cases/harness.ts'

/** A destination under test, empty at first. */
export interface DestinationHarness {
  readonly destination: Destination
  /** The stored rows of a database, decoded. In `append` and `history`, one per change or version, in order of sequence. */
  rows(database: string): Promise<StoredRow[]>
  /** The stored rows of a child table, decoded, in order of key and index. */
  children?(database: string, member: string): Promise<StoredChild[]>
  /**
   * Interrupts the connection when a batch is about to send its next statement after `statement` others; `commit` loses the
   * answer to the commit instead, after it took effect. Returns a function that ends the fault, and says if it happened.
   */
  interrupt?(fault: { readonly statement: number } | 'commit'): () => boolean
  /** Copies everything that is stored, and returns a function that restores the copy. */
  backUp?(): Promise<() => Promise<void>>
  close(): Promise<void>
}

/** A row as the destination stores it. */
export interface StoredRow {
  readonly key: string
  readonly sequence: number
  /** Null for a delete in `append`. */
  readonly record: JsonObject | null
  /** `append` only. */
  readonly action?: string
  /** `history` only. */
  readonly isCurrent?: boolean
}

/** A row of a child table. */
export interface StoredChild {
  readonly parentKey: string
  readonly index: number
  readonly record: JsonObject
}

/** One case of the suite; `needs` names what it requires of the harness or the destination. */
export interface DestinationCase {
  readonly name: string
  readonly needs?: 'interrupt' | 'backUp' | 'history' | 'append' | 'children'
  run(bench: DestinationBench): Promise<void>
}

/** A store with one sync, and the destination that follows it. */
export class DestinationBench {
  readonly harness: DestinationHarness
  readonly store: Store
  readonly log: string[] = []
  /** The fields of the log lines, as JSON. */
  readonly fields: string[] = []
  #driver: SyncDriver | null = null

  constructor(harness: DestinationHarness, store: Store) {
    this.harness = harness
    this.store = store
  }

  static async open(harness: DestinationHarness): Promise<DestinationBench> {
    return new DestinationBench(harness, await openSqliteStore({ file: ':memory:' }))
  }

  /** Commits changes to the database `things`: a record, or null to delete. */
  async commit(...changes: ReadonlyArray<readonly [key: string, record: JsonObject | null]>): Promise<void> {
    this.#driver ??= await SyncDriver.acquire(this.store)
    await this.#driver.cycle(changes.map(([key, record]) => (record === null ? remove(key) : upsert(key, record))))
  }

  run(options: RunOptions = {}): Promise<DestinationResult> {
    const {
      destination = this.harness.destination,
      mode = 'mirror',
      holder = 'one',
      limits,
      store = this.store,
      children = [],
    } = options
    return runDestination(
      { name: 'copy', destination, databases: ['things'], mode, children: { things: children } },
      {
        store,
        ports: this.#ports(),
        holder,
        signal: new AbortController().signal,
        newStoreId: () => `store-${this.#ids++}`,
        limits: limits ?? { ...DEFAULT_LIMITS, rowsMax: 5 },
      },
    )
  }

  #ids = 1

  /** The current rows of the store. */
  async current(): Promise<StoredRow[]> {
    const rows = await this.store.rows({ database: 'things', limit: 1_000_000 })
    return rows.map(({ key, sequence, text }) => ({ key, sequence, record: parseJson(text) as JsonObject }))
  }

  #ports(): Ports {
    const write = (level: string) => (message: string, fields?: object) => {
      this.log.push(`${level} ${message}`)
      this.fields.push(JSON.stringify(fields ?? {}))
    }
    return {
      // Retries do not wait; a heartbeat does.
      clock: {
        now: () => systemClock.now(),
        sleep: async (ms, signal) => (ms < 15_000 ? undefined : systemClock.sleep(ms, signal)),
      },
      random: { next: () => 0.5 },
      log: { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') },
    }
  }
}

export interface RunOptions {
  readonly destination?: Destination
  readonly mode?: DestinationMode
  readonly holder?: string
  readonly limits?: BatchLimits
  readonly store?: Store
  /** Fields of `things` that are stored in child tables. */
  readonly children?: readonly string[]
}
