import { SyncError, type Secrets } from '../contract/index.ts'
import { noteEnvironment, noteLookup } from '../redaction/known-secrets.ts'

/** An empty value is a missing one: a variable that is set to nothing never is a credential. */
export function createSecrets(environment: Readonly<Record<string, string | undefined>>): Secrets {
  noteEnvironment(environment)
  return {
    get(name) {
      const value = Object.hasOwn(environment, name) ? environment[name] : undefined
      if (value !== undefined && value !== '') {
        noteLookup(name, value)
        return value
      }
      throw new SyncError('SECRET_MISSING', `The secret ${name} is not set.`)
    },
  }
}
