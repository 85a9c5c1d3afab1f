import { SyncError, type Secrets } from '../contract/index.ts'
import { registerEnvironmentSecrets, registerNamedSecret } from '../redaction/known-secrets.ts'
import { isSecretReference, readSecretReference } from './secret-references.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** A tenant's own secret, such as `TOKEN__acme`, takes precedence over the shared one. */
export function createSecrets(environment: Environment, tenant?: string): Secrets {
  return createSecretLookup(environment, (name) =>
    tenant === undefined ? [name] : [tenantVariableName(name, tenant), name],
  )
}

/** Only the tenant's own secrets. */
export function createTenantSecrets(environment: Environment, tenant: string): Secrets {
  return createSecretLookup(environment, (name) => [tenantVariableName(name, tenant)])
}

/** An empty value counts as missing: it is never a credential. */
function createSecretLookup(environment: Environment, variablesOf: (name: string) => readonly string[]): Secrets {
  registerEnvironmentSecrets(environment)
  return {
    get(name) {
      const variables = variablesOf(name)
      for (const variable of variables) {
        const value = Object.hasOwn(environment, variable) ? environment[variable] : undefined
        if (value === undefined || value === '') continue
        // The variable names a file or a command that has the secret.
        if (isSecretReference(value)) return readSecretReference(value, environment)
        registerNamedSecret(name, value)
        return value
      }
      throw new SyncError(
        'SECRET_MISSING',
        `The secret ${variables.at(-1)} is not set. Set it in the environment or in .env.`,
      )
    },
  }
}

function tenantVariableName(name: string, tenant: string): string {
  return `${name}__${escapeTenantName(tenant)}`
}

/** Injective: characters that are not allowed in a variable name become their code, such as `a-b` to `a_2db`. */
function escapeTenantName(tenant: string): string {
  return tenant.replace(/[^A-Za-z0-9]/g, (character) => `_${character.charCodeAt(0).toString(16).padStart(2, '0')}`)
}
