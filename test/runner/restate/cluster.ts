import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePorts } from '../../../src/runner/restate/free-ports.ts'
import { RestateServer, type RestatePorts } from '../../../src/runner/restate/restate-server.ts'

/**
 * Settings of one node of a cluster, as in docs/guides/restate.md. Every write is on two of the three nodes, so any
 * one may be lost.
 */
export function settingsOf(index: number, ports: ReadonlyArray<RestatePorts>): Record<string, string> {
  return {
    RESTATE_CLUSTER_NAME: 'tidemark',
    RESTATE_DEFAULT_REPLICATION: '2',
    RESTATE_NODE_NAME: `node-${index + 1}`,
    RESTATE_AUTO_PROVISION: String(index === 0),
    RESTATE_METADATA_CLIENT__ADDRESSES: JSON.stringify(ports.map(({ node }) => `http://127.0.0.1:${node}`)),
  }
}

/** Restate nodes on this machine: three, or one. Each keeps its ports and its folder. */
export class RestateCluster {
  readonly folder = mkdtempSync(join(tmpdir(), 'tidemark-restate-'))
  readonly nodes: RestateServer[] = []
  readonly #ports: RestatePorts[]
  readonly #settings: Readonly<Record<string, string>>

  static async start(count: 1 | 3, settings: Readonly<Record<string, string>> = {}): Promise<RestateCluster> {
    const ports = await findFreePorts(Array.from({ length: count * 3 }))
    const each = Array.from({ length: count }, (_, index) => ({
      ingress: ports[3 * index]!,
      admin: ports[3 * index + 1]!,
      node: ports[3 * index + 2]!,
    }))
    const cluster = new RestateCluster(each, settings)
    try {
      // Concurrently: the first node waits for a second before it responds.
      cluster.nodes.push(...(await Promise.all(each.map((_, index) => cluster.#open(index)))))
      return cluster
    } catch (error) {
      await cluster.close()
      throw error
    }
  }

  private constructor(ports: RestatePorts[], settings: Readonly<Record<string, string>>) {
    this.#ports = ports
    this.#settings = settings
  }

  /** Restarts the node with its folder and its ports. */
  async restart(index: number): Promise<void> {
    this.nodes[index] = await this.#open(index)
  }

  async close(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.kill()))
    rmSync(this.folder, { recursive: true, force: true })
  }

  #open(index: number): Promise<RestateServer> {
    const cluster = this.#ports.length === 1 ? {} : settingsOf(index, this.#ports)
    return RestateServer.start({
      folder: join(this.folder, String(index + 1)),
      ports: this.#ports[index]!,
      settings: { ...cluster, ...this.#settings },
    })
  }
}
