import { basename, join } from 'node:path'
import { SyncError, type DestinationProgress, type Store } from '../../contract/index.ts'
import { systemClock } from '../../platform/clock.ts'

const NAME = 'copy'
const POLL_MS = 200

/** The DuckDB file of `tidemark demo --destination duckdb`, beside the store of the demo. */
export class DemoDestination {
  readonly file: string

  private constructor(file: string) {
    this.file = file
  }

  /** Throws PACKAGE_UNFIT before anything is started. */
  static async open(folder: string): Promise<DemoDestination> {
    const { loadDuckdb } = await import('../../destinations/duckdb/load-duckdb.ts')
    await loadDuckdb()
    return new DemoDestination(join(folder, 'copy.duckdb'))
  }

  get name(): string {
    return basename(this.file)
  }

  /** The worker of the demo with the destination. */
  addTo(workerText: string): string {
    return workerText
      .replace("from 'tidemark'\n", "from 'tidemark'\nimport { duckdb } from 'tidemark/destinations/duckdb'\n")
      .replace(
        'export default worker',
        `// Every database, in a DuckDB file. It is closed between two runs, so that you can query it.
worker.destination('${NAME}', duckdb({ file: ${JSON.stringify(this.file)} }))

export default worker`,
      )
  }

  /** Waits until the file has every change up to now. Null if the demo was stopped before. */
  async waitUntilCopied(store: Store, signal: AbortSignal): Promise<readonly DestinationProgress[] | null> {
    const headSequence = await store.headSequence()
    while (!signal.aborted) {
      const status = (await store.destinations()).find(({ name }) => name === NAME)
      if (status !== undefined && status.error !== null)
        throw new SyncError(status.error.code, `The copy in ${this.name} failed. ${status.error.message}`)
      const databases = status?.databases ?? []
      const isCopied = databases.every(
        ({ state, readSequence }) => state === 'following' && readSequence >= headSequence,
      )
      if (databases.length > 0 && isCopied) return databases
      await systemClock.sleep(POLL_MS, signal).catch(() => {})
    }
    return null
  }

  /** Changes that were copied so far. */
  async countChanges(store: Store): Promise<number> {
    const status = (await store.destinations()).find(({ name }) => name === NAME)
    return (status?.databases ?? []).reduce((sum, { changes }) => sum + changes, 0)
  }
}
