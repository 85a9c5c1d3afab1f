import { SyncError, type JsonObject } from '../../contract/index.ts'

export function requireString(object: JsonObject, member: string): string {
  const value = object[member]
  if (typeof value !== 'string' || value === '') throw new SyncError('SOURCE_INVALID', `An object of Stripe has no \`${member}\`.`)
  return value
}

/** Some objects, such as those of an unknown version, have none. */
export function getObjectType({ object }: JsonObject): string {
  return typeof object === 'string' ? object : ''
}
