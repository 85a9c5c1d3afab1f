import { SyncError, type JsonObject } from '../../contract/index.ts'

export function requireString(object: JsonObject, field: string): string {
  const value = object[field]
  if (typeof value !== 'string' || value === '')
    throw new SyncError('SOURCE_INVALID', `A Stripe object has no \`${field}\`.`)
  return value
}

/** Empty if the object has no type, for example in an unknown API version. */
export function getObjectType({ object }: JsonObject): string {
  return typeof object === 'string' ? object : ''
}
