import type { JsonObject } from '../contract/index.ts'

/** Record type by database name, as written by `tidemark types`. By default a record is any object. */
export type AnyDatabases = Record<string, JsonObject>

/** One change of one row. A union over databases and actions: checking `database` and `action` narrows `snapshot`. */
export type Change<
  Databases extends object = AnyDatabases,
  Name extends keyof Databases & string = keyof Databases & string,
> = {
  [Type in Name]: UpsertChange<Type, Databases[Type]> | DeleteChange<Type>
}[Name]

/** A row was created or updated. Narrow a `Change` to it with `action`. */
export interface UpsertChange<Type extends string, Record> extends ChangeBase<Type> {
  readonly action: 'created' | 'updated'
  /** The record after the change. Integers that a double cannot represent are bigint. */
  readonly snapshot: Record
}

/** A row was deleted. Narrow a `Change` to it with `action`. */
export interface DeleteChange<Type extends string> extends ChangeBase<Type> {
  readonly action: 'deleted'
  readonly snapshot: null
}

interface ChangeBase<Type extends string> {
  readonly eventId: string
  /** The singular of the database's name, unless the worker declares another type. */
  readonly resourceType: string
  readonly database: Type
  /** The row's key. */
  readonly resourceId: string
  readonly updatedAt: string
}

/** A current row of a database, as `list` and `get` return it. */
export interface Row<Record = JsonObject> {
  readonly id: string
  readonly updatedAt: string
  readonly record: Record
}

/** Idempotency key of a change: store it with your effect, and a redelivered change takes effect once. */
export function changeKey({
  resourceType,
  resourceId,
  updatedAt,
  action,
}: Pick<Change, 'resourceType' | 'resourceId' | 'updatedAt' | 'action'>): string {
  return JSON.stringify([resourceType, resourceId, updatedAt, action])
}
