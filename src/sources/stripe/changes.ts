import type { AsOf, Change, JsonObject } from '../../contract/index.ts'
import { formatOrderedTime } from './events.ts'
import { requireString, getObjectType } from './object-fields.ts'
import { extractNested } from './nested-objects.ts'

/** Where the objects of a stream go: its own type into the sync's database, nested types into theirs. */
export interface StreamDatabases {
  readonly type: string
  readonly nested: Readonly<Record<string, string>>
}

export interface ObjectFacts {
  readonly upstreamUpdatedAt: string | undefined
  readonly asOf: AsOf | undefined
}

/** The object and those inside it that have a database of their own. */
export function toUpserts(object: JsonObject, { type, nested }: StreamDatabases, facts: ObjectFacts): Change[] {
  const { record, nested: found } = extractNested(object, nested)
  const database = getObjectType(object) === type ? undefined : nested[getObjectType(object)]
  return [toUpsert(record, database, facts), ...found.map((inner) => toUpsert(inner.record, inner.database, facts))]
}

export function toUpsert(record: JsonObject, database: string | undefined, { upstreamUpdatedAt, asOf }: ObjectFacts): Change {
  return {
    type: 'upsert', key: requireString(record, 'id'), record,
    ...(upstreamUpdatedAt !== undefined && { upstreamUpdatedAt }), ...(asOf !== undefined && { asOf }), ...(database !== undefined && { database }),
  }
}

/** Stripe does not say when an object was changed, only since when it exists. */
export function getListedObjectFacts(object: JsonObject): ObjectFacts {
  return { upstreamUpdatedAt: typeof object.created === 'number' ? formatOrderedTime(object.created, 'listed') : undefined, asOf: 'read' }
}
