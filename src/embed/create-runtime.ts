import { createClientFinder } from '../connections/find-client.ts'
import { SourceConnections } from '../connections/source-connections.ts'
import { SyncError, type Log, type Secrets } from '../contract/index.ts'
import { systemClock } from '../platform/clock.ts'
import { systemFetch } from '../platform/fetch.ts'
import { createLog } from '../platform/log.ts'
import { openTelemetry } from '../platform/open-telemetry.ts'
import { systemRandom } from '../platform/random.ts'
import { createSecrets, createTenantSecrets } from '../platform/secrets.ts'
import { registerNamedSecret } from '../redaction/known-secrets.ts'
import type { TenantSourceRuntime } from '../runner/tenant-runtime.ts'
import type { TidemarkOptions } from './options.ts'

/** The clock and network of this machine, with the log and the secrets of the host program. */
export async function createRuntime({
  log,
  secrets,
  connect,
  environment = process.env,
}: TidemarkOptions): Promise<TenantSourceRuntime> {
  const telemetry = await openTelemetry({ sendTraceparent: environment['TIDEMARK_TRACEPARENT'] === 'send' })
  const secretsOf = (tenant: string): Secrets =>
    secrets === undefined ? createSecrets(environment, tenant) : createProvidedSecrets(secrets, tenant)
  const chosenLog = isLog(log)
    ? log
    : createLog({
        ...(log !== undefined && { level: log }),
        ...(telemetry !== null && { context: telemetry.logFields }),
      })
  return {
    ports: {
      clock: systemClock,
      random: systemRandom,
      log: chosenLog,
      connections: new SourceConnections({
        ports: { clock: systemClock, log: chosenLog },
        fetch: systemFetch,
        findClient: createClientFinder({ secretsOf, ...(connect !== undefined && { providers: connect.providers }) }),
      }),
      tracer: telemetry?.tracer,
      meter: telemetry?.meter,
    },
    fetch: systemFetch,
    secrets: secretsOf('default'),
    secretsOf,
    // A function answers for one tenant, so it has no shared secrets.
    ownSecretsOf: secrets === undefined ? (tenant) => createTenantSecrets(environment, tenant) : secretsOf,
  }
}

function isLog(log: Log | string | undefined): log is Log {
  return typeof log === 'object'
}

function createProvidedSecrets(provide: NonNullable<TidemarkOptions['secrets']>, tenant: string): Secrets {
  return {
    get(name) {
      const value = provide(name, tenant)
      if (value === undefined || value === '')
        throw new SyncError('SECRET_MISSING', `The option \`secrets\` returned no ${name} for tenant ${tenant}.`)
      // Masks the value in logs and errors.
      registerNamedSecret(name, value)
      return value
    },
  }
}
