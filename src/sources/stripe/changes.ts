import type { AsOf, Change, JsonObject } from '../../contract/index.ts'
import { formatOrderedTime } from './events.ts'
import { requireString, getObjectType } from './object-fields.ts'
import { extractNested } from './nested-objects.ts'

/** The databases of a stream: its own type goes to the sync's database, nested types to theirs. */
export interface StreamDatabases {
  readonly type: string
  readonly nested: Readonly<Record<string, string>>
}

export interface ObjectFacts {
  readonly upstreamUpdatedAt: string | undefined
  readonly asOf: AsOf | undefined
}

/** Returns the upsert of the object, then those of nested objects with their own database. */
export function toUpserts(
  object: JsonObject,
  { type, nested }: StreamDatabases,
  facts: ObjectFacts,
): [Change, ...Change[]] {
  const { record, nested: found } = extractNested(object, nested)
  const database = getObjectType(object) === type ? undefined : nested[getObjectType(object)]
  return [toUpsert(record, database, facts), ...found.map((inner) => toUpsert(inner.record, inner.database, facts))]
}

export function toUpsert(
  record: JsonObject,
  database: string | undefined,
  { upstreamUpdatedAt, asOf }: ObjectFacts,
): Change {
  return {
    type: 'upsert',
    key: requireString(record, 'id'),
    record,
    ...(upstreamUpdatedAt !== undefined && { upstreamUpdatedAt }),
    ...(asOf !== undefined && { asOf }),
    ...(database !== undefined && { database }),
  }
}

/** Stripe objects have a creation time but no modification time. */
export function getListedObjectFacts(object: JsonObject): ObjectFacts {
  return {
    upstreamUpdatedAt: typeof object.created === 'number' ? formatOrderedTime(object.created, 'listed') : undefined,
    asOf: 'read',
  }
}
