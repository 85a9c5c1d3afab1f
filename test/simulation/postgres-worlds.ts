import pg from 'pg'
import type { Store } from '../../src/contract/index.ts'
import { openPostgresStore } from '../../src/stores/postgres/store.ts'
import type { WorldStoreFactory } from '../../src/testing/simulation/world-store-factory.ts'
import { createDatabase, dropDatabase } from '../setup/postgres-server.ts'

/** A database whose clock is that of the world that runs in it. Worlds run in sequence, each as a separate tenant. */
export class PostgresWorlds implements WorldStoreFactory {
  readonly ownClock = true
  readonly #server: string
  readonly #url: string
  /** A superuser of the database, who sets its clock. */
  readonly #keeper: pg.Client
  readonly #store: Store
  readonly #emptied: string
  #worlds = 0

  private constructor(server: string, url: string, keeper: pg.Client, store: Store, tables: readonly string[]) {
    this.#server = server
    this.#url = url
    this.#keeper = keeper
    this.#store = store
    this.#emptied = `truncate ${tables.join(', ')}`
  }

  static async create(server: string): Promise<PostgresWorlds> {
    const url = await createDatabase(server)
    const keeper = new pg.Client({
      connectionString: Object.assign(new URL(server), { pathname: new URL(url).pathname }).href,
    })
    await keeper.connect()
    await keeper.query(VIRTUAL_CLOCK)
    const store = await openPostgresStore({ url, poolMax: 4 })
    const { rows } = await keeper.query<{ name: string }>(
      "select format('tidemark.%I', tablename) as name from pg_tables where schemaname = 'tidemark'",
    )
    return new PostgresWorlds(
      server,
      url,
      keeper,
      store,
      rows.map(({ name }) => name),
    )
  }

  async open(now: () => number): Promise<Store> {
    // The rows of earlier worlds would slow every statement down. The audit log's triggers refuse deletes.
    await this.#keeper.query(`set session_replication_role = replica; ${this.#emptied}`)
    return {
      ...onTime(this.#store.forTenant(`world${++this.#worlds}`), () => this.#setClock(now())),
      close: async () => {},
    }
  }

  async remove(): Promise<void> {
    await this.#store.close()
    await this.#keeper.end()
    await dropDatabase(this.#server, this.#url)
  }

  async #setClock(ms: number): Promise<void> {
    await this.#keeper.query("select setval('simulation.clock', $1)", [ms])
  }
}

/**
 * The built-in function is replaced, so that the store's own statements stay unchanged. A sequence is visible to all
 * transactions at once.
 */
const VIRTUAL_CLOCK = `
create schema simulation;
grant usage on schema simulation to public;
create sequence simulation.clock minvalue 0;
grant select on sequence simulation.clock to public;
alter function pg_catalog.clock_timestamp() rename to real_clock_timestamp;
create function pg_catalog.clock_timestamp() returns timestamptz language sql volatile as
  'select to_timestamp(last_value / 1000.0) from simulation.clock';`

/** Sets the clock before each call. */
function onTime(store: Store, setClock: () => Promise<void>): Store {
  const timed: Partial<Record<keyof Store, unknown>> = {
    ...store,
    forTenant: (tenant: string) => onTime(store.forTenant(tenant), setClock),
  }
  for (const [name, member] of Object.entries(store)) {
    if (typeof member !== 'function' || name === 'forTenant' || name === 'subscribe') continue
    timed[name as keyof Store] = async (...args: unknown[]): Promise<unknown> => {
      await setClock()
      return Reflect.apply(member as (...args: unknown[]) => unknown, store, args)
    }
  }
  return timed as unknown as Store
}
