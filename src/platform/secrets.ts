import { SyncError, type Secrets } from '../contract/index.ts'
import { noteEnvironment, noteLookup } from '../redaction/known-secrets.ts'

/**
 * An empty value is a missing one: a variable that is set to nothing never is a credential. A tenant's own, `TOKEN__acme`, goes
 * before what is the same for all.
 */
export function createSecrets(environment: Readonly<Record<string, string | undefined>>, tenant?: string): Secrets {
  noteEnvironment(environment)
  return {
    get(name) {
      for (const variable of [...(tenant === undefined ? [] : [`${name}__${inVariable(tenant)}`]), name]) {
        const value = Object.hasOwn(environment, variable) ? environment[variable] : undefined
        if (value === undefined || value === '') continue
        noteLookup(name, value)
        return value
      }
      throw new SyncError('SECRET_MISSING', `The secret ${name} is not set.`)
    },
  }
}

/** No two tenants share one: what a variable's name cannot hold is written as its code, `a-b` as `a_2db`. */
function inVariable(tenant: string): string {
  return tenant.replace(/[^A-Za-z0-9]/g, (character) => `_${character.charCodeAt(0).toString(16).padStart(2, '0')}`)
}
