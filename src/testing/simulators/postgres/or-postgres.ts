import { fileURLToPath } from 'node:url'
import { SyncError } from '../../../contract/index.ts'
import { standIn, WRITE_EVERY_MS, writesBy } from '../or-simulated.ts'
import { JoinedPostgres } from './joined-postgres.ts'
import { SHOP } from './shop.ts'

export interface OrPostgresOptions {
  /** The secret that holds the URL of the real server. */
  readonly unless: string
  /** Where the small one keeps its data. */
  readonly folder: URL
  /** When the shop in it was opened. */
  readonly since: string
}

/**
 * For a worker that should run before it has a server: a source reads a real PostgreSQL with a logical log, started when it is
 * first asked and ended with the last process that reads from it, until the secret is set. Orders come, change and go in its
 * table `orders` as time goes by; `url` in its folder is its address while it runs, so whoever likes may write to it as well.
 */
export function orPostgres({ unless, folder, since }: OrPostgresOptions): <Source extends object>(source: Source) => Source {
  const path = fileURLToPath(folder)
  const sinceMs = Date.parse(since)
  let opened: Promise<JoinedPostgres> | null = null
  return standIn(unless, async ({ clock, signal }) => {
    const server = await (opened ??= openShop(path, unless, signal, () => (opened = null)))
    await server.query('select people.work($1, $2, $3)', [new Date(sinceMs), writesBy(clock.now(), sinceMs), WRITE_EVERY_MS])
    return { secrets: { get: () => server.url } }
  })
}

/** `over` is called when it failed, and when the server is gone. */
async function openShop(folder: string, unless: string, signal: AbortSignal, over: () => void): Promise<JoinedPostgres> {
  try {
    const server = await JoinedPostgres.join(folder, signal, over)
    await server.query(SHOP)
    return server
  } catch (error) {
    over()
    if (error instanceof SyncError && error.code === 'PACKAGE_UNFIT') throw new SyncError(error.code, `${error.message} Or set ${unless} to the URL of a server of yours.`, { cause: error })
    throw error
  }
}
