import type { JsonObject } from '../contract/index.ts'

/** Every database with its record: what `tidemark types` writes. Without it a record is any object. */
export type AnyDatabases = Record<string, JsonObject>

/** One change of one row. A union over databases and actions: asking for `database` and `action` narrows `snapshot`. */
export type Change<Databases extends object = AnyDatabases, Name extends keyof Databases & string = keyof Databases & string> = {
  [Type in Name]: UpsertChange<Type, Databases[Type]> | DeleteChange<Type>
}[Name]

export interface UpsertChange<Type extends string, Record> extends ChangeBase<Type> {
  readonly action: 'created' | 'updated'
  /** The record after the change. Integers that a double cannot hold are bigint. */
  readonly snapshot: Record
}

export interface DeleteChange<Type extends string> extends ChangeBase<Type> {
  readonly action: 'deleted'
  readonly snapshot: null
}

interface ChangeBase<Type extends string> {
  readonly eventId: string
  /** What the row is: the singular of the database's name unless the worker declares another. */
  readonly resourceType: string
  readonly database: Type
  /** The row's key. */
  readonly resourceId: string
  readonly updatedAt: string
}

/** A row of a list. */
export interface Row<Record = JsonObject> {
  readonly id: string
  readonly updatedAt: string
  readonly record: Record
}

/** What makes two deliveries the same change: keep it with what you did, and a change that comes again is done once. */
export function changeKey({ resourceType, resourceId, updatedAt, action }: Pick<Change, 'resourceType' | 'resourceId' | 'updatedAt' | 'action'>): string {
  return JSON.stringify([resourceType, resourceId, updatedAt, action])
}
