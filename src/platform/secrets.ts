import { SyncError, type Secrets } from '../contract/index.ts'
import { noteEnvironment, noteLookup } from '../redaction/known-secrets.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** A tenant's own, `TOKEN__acme`, goes before what is the same for all. */
export function createSecrets(environment: Environment, tenant?: string): Secrets {
  return lookUp(environment, (name) => (tenant === undefined ? [name] : [ownName(name, tenant), name]))
}

/** A tenant's own alone. */
export function createOwnSecrets(environment: Environment, tenant: string): Secrets {
  return lookUp(environment, (name) => [ownName(name, tenant)])
}

/** An empty value is a missing one: a variable that is set to nothing never is a credential. */
function lookUp(environment: Environment, variablesOf: (name: string) => readonly string[]): Secrets {
  noteEnvironment(environment)
  return {
    get(name) {
      const variables = variablesOf(name)
      for (const variable of variables) {
        const value = Object.hasOwn(environment, variable) ? environment[variable] : undefined
        if (value === undefined || value === '') continue
        noteLookup(name, value)
        return value
      }
      throw new SyncError('SECRET_MISSING', `The secret ${variables.at(-1)} is not set.`)
    },
  }
}

function ownName(name: string, tenant: string): string {
  return `${name}__${inVariable(tenant)}`
}

/** No two tenants share one: what a variable's name cannot hold is written as its code, `a-b` as `a_2db`. */
function inVariable(tenant: string): string {
  return tenant.replace(/[^A-Za-z0-9]/g, (character) => `_${character.charCodeAt(0).toString(16).padStart(2, '0')}`)
}
