import type { Cluster } from 'kafkajs'
import type { SyncContext } from '../../contract/index.ts'
import { buildConfig, connectCluster, type KafkaOptions } from './connect.ts'
import { toSyncError } from './failures.ts'

/** Connections that live for one cycle. Correctness does not depend on them: the state is complete without. */
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
    // The credentials are part of the name: one worker may read for many tenants whose cycles have the same numbers.
    const name = JSON.stringify([cycle.mode, cycle.id, config])
    let cluster = this.#clusters.get(name)
    if (cluster === undefined) {
      this.#clusters.set(name, (cluster = connectCluster(config)))
      // The signal of the first page that needs the connection also aborts at the end of the cycle.
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
