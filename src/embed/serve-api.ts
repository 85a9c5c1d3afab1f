import type { JsonSchema } from '../worker/schema.ts'
import type { ConnectFlow } from '../connections/connect/connect-flow.ts'
import { SyncError, type Ports, type Store, type StoreLocation } from '../contract/index.ts'
import type { SourceRuntime } from '../runner/call-source.ts'
import type { ScheduledDestination } from '../destinations/loop/destination-overview.ts'
import type { DeclaredSync } from '../runner/declared-sync.ts'
import type { RunnerCapacity } from '../runner/runner-options.ts'
import type { Metrics } from '../server/metrics.ts'
import type { TenantInboundWebhooks } from '../webhooks/tenant-inbound-webhooks.ts'
import { ownVersion } from '../platform/own-version.ts'
import type { Server } from '../server/server.ts'

export const DEFAULT_PORT = 4680

export interface ApiOptions {
  readonly store: Store
  readonly ports: Ports
  readonly sourceRuntime: SourceRuntime
  readonly syncs: readonly DeclaredSync[]
  readonly destinations?: readonly ScheduledDestination[]
  readonly schemas: Readonly<Record<string, JsonSchema>>
  readonly resourceTypes: Readonly<Record<string, string>>
  /** Absent on a replica, which accepts no inbound webhooks. */
  readonly inbound?: TenantInboundWebhooks
  readonly connect?: ConnectFlow
  /** See `confinedSelectOf`. */
  readonly select?: StoreLocation['select'] | undefined
  readonly corsOrigins?: readonly string[]
  readonly keysOnly?: boolean
  readonly isServedTenant?: (tenant: string) => boolean
  readonly metrics: Metrics
  readonly runnerCapacity?: () => RunnerCapacity
  /** Null if another program passes the requests on. */
  readonly address: ApiAddress | null
}

export interface ApiAddress {
  readonly host: string
  /** If undefined, the default port, or any free port if it is taken. */
  readonly port: number | undefined
}

export interface ServedApi {
  /** Null if the server does not listen. */
  readonly url: string | null
  readonly server: Server
}

/** Imports the server here, so that commands that serve nothing start without it. */
export async function serveApi({ address, ...options }: ApiOptions): Promise<ServedApi> {
  const { createServer } = await import('../server/server.ts')
  const version = ownVersion()
  // Whether a passed-on request comes from this machine is unknown, so a key is always required.
  if (address === null) return { url: null, server: createServer({ ...options, version, keysOnly: true }) }
  const { host, port } = address
  const attempt = async (tried: number): Promise<ServedApi> => {
    const server = createServer({ ...options, version, host })
    try {
      return { url: await server.listen(tried), server }
    } catch (error) {
      await server.close()
      throw error
    }
  }
  try {
    return await attempt(port ?? DEFAULT_PORT)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // Several servers can run on one machine; only an explicitly requested port is mandatory.
    if (code === 'EADDRINUSE' && port === undefined) return await attempt(0)
    throw new SyncError(
      'PORT_TAKEN',
      `The API cannot listen on ${host}:${port ?? DEFAULT_PORT} (${code ?? 'unknown error'}).`,
      { cause: error },
    )
  }
}
