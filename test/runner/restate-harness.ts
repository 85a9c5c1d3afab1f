import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Store } from '../../src/contract/index.ts'
import { registerService } from '../../src/runner/restate/register-service.ts'
import { RestateServer } from '../../src/runner/restate/restate-server.ts'
import type { RunnerHarness } from '../../src/testing/runner-cases/harness.ts'
import { Balancer } from './restate/balancer.ts'
import { FleetHarness, type FleetOptions } from './fleet-harness.ts'

/** Real processes that serve the fixture's worker to a real Restate server behind one address. */
export class RestateHarness implements RunnerHarness {
  server: RestateServer
  readonly fleet: FleetHarness
  readonly #balancer: Balancer
  readonly #folder: string

  static async open(storeUrl: (folder: string) => string, stageUrl: string): Promise<RestateHarness> {
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-restate-'))
    const server = await RestateServer.start({ folder: join(folder, 'restate') })
    const fleet = await FleetHarness.open(storeUrl(folder), stageUrl)
    return new RestateHarness(server, fleet, await Balancer.open(() => [...fleet.urls.values()]), folder)
  }

  private constructor(server: RestateServer, fleet: FleetHarness, balancer: Balancer, folder: string) {
    this.server = server
    this.fleet = fleet
    this.#balancer = balancer
    this.#folder = folder
  }

  get store(): Store {
    return this.fleet.store
  }

  async start(options: FleetOptions): Promise<void> {
    await this.fleet.start({ ...options, ingress: this.server.ingress })
    await registerService(this.server.admin, this.#balancer.url)
  }

  trigger(sync: string, tenant?: string): Promise<void> {
    return this.fleet.trigger(sync, tenant)
  }

  pause(sync: string): Promise<void> {
    return this.fleet.pause(sync)
  }

  resume(sync: string): Promise<void> {
    return this.fleet.resume(sync)
  }

  stop(): Promise<void> {
    return this.fleet.stop()
  }

  kill(): Promise<string> {
    return this.fleet.kill()
  }

  /** Kills the server and starts it again on its data. */
  async restartServer(): Promise<void> {
    const { folder, ports } = this.server
    await this.server.kill()
    this.server = await RestateServer.start({ folder, ports })
  }

  async close(): Promise<void> {
    await this.fleet.close()
    await this.#balancer.close()
    await this.server.kill()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  /** Calls a handler of an object through Restate. */
  async call<T>(sync: string, handler: string, input?: unknown): Promise<T> {
    const answer = await fetch(
      `${this.server.ingress}/tidemark.stage/${encodeURIComponent(`default/${sync}`)}/${handler}`,
      {
        method: 'POST',
        ...(input !== undefined && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(input) }),
      },
    )
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${handler} of ${sync} answered ${answer.status}: ${text}`)
    return (text === '' ? undefined : JSON.parse(text)) as T
  }

  /** Invocations in Restate's own tables. */
  async invocations(where: string): Promise<Array<Record<string, unknown>>> {
    const answer = await fetch(`${this.server.admin}/query`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({
        query: `select id, target_service_key as key, target_handler_name as handler, status, retry_count from sys_invocation where ${where}`,
      }),
    })
    return ((await answer.json()) as { rows: Array<Record<string, unknown>> }).rows
  }
}
