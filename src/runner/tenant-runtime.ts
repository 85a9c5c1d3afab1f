import type { Secrets } from '../contract/index.ts'
import type { SourceRuntime } from './call-source.ts'

/** A source runtime with secrets per tenant. */
export interface TenantSourceRuntime extends SourceRuntime {
  readonly secretsOf: (tenant: string) => Secrets
  /** Only the tenant's own secrets, without the shared ones. */
  readonly ownSecretsOf: (tenant: string) => Secrets
}
