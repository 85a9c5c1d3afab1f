import type { Cluster } from 'kafkajs'
import type { SyncContext } from '../../contract/index.ts'
import { buildConfig, connectCluster, type KafkaOptions } from './connect.ts'
import { toSyncError } from './failures.ts'

/** Connections, each kept from page to page of one cycle and ended with it. Nothing depends on one: the state is all that counts. */
export class ClusterConnections {
  readonly #options: KafkaOptions
  readonly #clusters = new Map<string, Promise<Cluster>>()

  constructor(options: KafkaOptions) {
    this.#options = options
  }

  async withCluster<Answer>(context: SyncContext, act: (cluster: Cluster) => Promise<Answer>): Promise<Answer> {
    const { cycle, signal } = context
    signal.throwIfAborted()
    const config = buildConfig(this.#options, context)
    // With the credentials: one worker may read for many tenants, and their cycles have the same numbers.
    const name = JSON.stringify([cycle.mode, cycle.id, config])
    let cluster = this.#clusters.get(name)
    if (cluster === undefined) {
      this.#clusters.set(name, (cluster = connectCluster(config)))
      // Of the page that is the first to need it; also when the cycle is over.
      signal.addEventListener('abort', () => this.#disconnect(name), { once: true })
    }
    try {
      return await act(await cluster)
    } catch (error) {
      this.#disconnect(name)
      throw toSyncError(error, `Kafka at ${config.brokers.join(', ')}`)
    }
  }

  #disconnect(name: string): void {
    const cluster = this.#clusters.get(name)
    this.#clusters.delete(name)
    cluster?.then((opened) => opened.disconnect()).catch(() => {})
  }
}
