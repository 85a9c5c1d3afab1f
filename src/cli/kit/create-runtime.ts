import { createClientFinder } from '../../connections/find-client.ts'
import { SourceConnections } from '../../connections/source-connections.ts'
import type { Secrets } from '../../contract/index.ts'
import { systemClock } from '../../platform/clock.ts'
import { systemFetch } from '../../platform/fetch.ts'
import { openTelemetry } from '../../platform/open-telemetry.ts'
import { systemRandom } from '../../platform/random.ts'
import { createTenantSecrets, createSecrets } from '../../platform/secrets.ts'
import type { TenantSourceRuntime } from '../../runner/tenant-runtime.ts'
import type { Cli } from '../cli.ts'
import { createTerminalLog, type Target } from './target.ts'

/** Creates the ports of a sync from this machine: clock, network, environment and telemetry. */
export async function createRuntime(cli: Cli, { settings, tenant }: Target): Promise<TenantSourceRuntime> {
  const secretsOf = (name: string): Secrets => createSecrets(settings.environment, name)
  const telemetry = await openTelemetry({ sendTraceparent: settings.sendTraceparent })
  const log = createTerminalLog(cli, settings.logLevel, telemetry?.logFields)
  return {
    ports: {
      clock: systemClock,
      random: systemRandom,
      log,
      connections: new SourceConnections({
        ports: { clock: systemClock, log },
        fetch: systemFetch,
        findClient: createClientFinder({ secretsOf }),
      }),
      tracer: telemetry?.tracer,
      meter: telemetry?.meter,
    },
    fetch: systemFetch,
    secrets: secretsOf(tenant),
    secretsOf,
    ownSecretsOf: (name) => createTenantSecrets(settings.environment, name),
  }
}
