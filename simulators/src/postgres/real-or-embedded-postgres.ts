import { fileURLToPath } from 'node:url'
import { SimulatorError } from '../kit/simulator-error.ts'
import { replaceContextUnless, WRITE_EVERY_MS, countWritesBy } from '../real-or-simulated.ts'
import { SharedPostgres } from './shared-postgres.ts'
import { SAMPLE_SHOP_SQL } from './sample-shop-schema.ts'

/** Options of `realOrEmbeddedPostgres`. */
export interface RealOrEmbeddedPostgresOptions {
  /** The secret that holds the URL of the real server. */
  readonly unless: string
  /** The data directory of the embedded server. */
  readonly folder: URL
  /** When the simulated shop was opened. */
  readonly since: string
}

/**
 * For a worker that should run before it has a server: until the secret is set, a source reads a real PostgreSQL with
 * logical replication, started on the first read and stopped with the last process that uses it. Orders are created,
 * updated and deleted in its table `orders` over time; the file `url` in its folder has its address while it runs, so
 * you can write to it as well.
 */
export function realOrEmbeddedPostgres({
  unless,
  folder,
  since,
}: RealOrEmbeddedPostgresOptions): <Source extends object>(source: Source) => Source {
  const path = fileURLToPath(folder)
  const sinceMs = Date.parse(since)
  let opened: Promise<SharedPostgres> | null = null
  return replaceContextUnless(unless, async ({ clock, signal }) => {
    const server = await (opened ??= openSampleShop(path, unless, signal, () => (opened = null)))
    await server.query('select people.work($1, $2, $3)', [
      new Date(sinceMs),
      countWritesBy(clock.now(), sinceMs),
      WRITE_EVERY_MS,
    ])
    return { secrets: { get: () => server.url } }
  })
}

/** `over` is called when it failed, and when the server has stopped. */
async function openSampleShop(
  folder: string,
  unless: string,
  signal: AbortSignal,
  over: () => void,
): Promise<SharedPostgres> {
  try {
    const server = await SharedPostgres.join(folder, signal, over)
    await server.query(SAMPLE_SHOP_SQL)
    return server
  } catch (error) {
    over()
    if (error instanceof SimulatorError && error.code === 'PACKAGE_UNFIT')
      throw new SimulatorError(error.code, `${error.message} Or set ${unless} to the URL of a server of yours.`, {
        cause: error,
      })
    throw error
  }
}
