import type { Secrets } from '../../contract/index.ts'
import { systemClock } from '../../platform/clock.ts'
import { systemFetch } from '../../platform/fetch.ts'
import { openTelemetry } from '../../platform/open-telemetry.ts'
import { systemRandom } from '../../platform/random.ts'
import { createTenantSecrets, createSecrets } from '../../platform/secrets.ts'
import type { SourceRuntime } from '../../runner/call-source.ts'
import type { Cli } from '../cli.ts'
import { createTerminalLog, type Target } from './target.ts'

/** With what is of one tenant alone. */
export interface TenantSourceRuntime extends SourceRuntime {
  readonly secretsOf: (tenant: string) => Secrets
  /** Without those that are the same for all. */
  readonly ownSecretsOf: (tenant: string) => Secrets
}

/** This machine's clock, network and environment, as a sync sees them, and whoever watches it. */
export async function createRuntime(cli: Cli, { settings, tenant }: Target): Promise<TenantSourceRuntime> {
  const secretsOf = (whose: string): Secrets => createSecrets(settings.environment, whose)
  const telemetry = await openTelemetry({ sendTraceparent: settings.sendTraceparent })
  return {
    ports: { clock: systemClock, random: systemRandom, log: createTerminalLog(cli, settings.logLevel, telemetry?.logFields), tracer: telemetry?.tracer, meter: telemetry?.meter },
    fetch: systemFetch,
    secrets: secretsOf(tenant),
    secretsOf,
    ownSecretsOf: (whose) => createTenantSecrets(settings.environment, whose),
  }
}
