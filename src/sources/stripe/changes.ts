import type { AsOf, Change, JsonObject } from '../../contract/index.ts'
import { timeAt } from './events.ts'
import { textOf, typeOf } from './members.ts'
import { extract } from './nested.ts'

/** Where the objects of a stream go: its own type into the sync's database, nested types into theirs. */
export interface Databases {
  readonly type: string
  readonly nested: Readonly<Record<string, string>>
}

export interface ObjectFacts {
  readonly upstreamUpdatedAt: string | undefined
  readonly asOf: AsOf | undefined
}

/** The object and those inside it that have a database of their own. */
export function upsertsOf(object: JsonObject, { type, nested }: Databases, facts: ObjectFacts): Change[] {
  const { record, nested: found } = extract(object, nested)
  const database = typeOf(object) === type ? undefined : nested[typeOf(object)]
  return [upsertOf(record, database, facts), ...found.map((inner) => upsertOf(inner.record, inner.database, facts))]
}

export function upsertOf(record: JsonObject, database: string | undefined, { upstreamUpdatedAt, asOf }: ObjectFacts): Change {
  return {
    type: 'upsert', key: textOf(record, 'id'), record,
    ...(upstreamUpdatedAt !== undefined && { upstreamUpdatedAt }), ...(asOf !== undefined && { asOf }), ...(database !== undefined && { database }),
  }
}

/** Stripe does not say when an object was changed, only since when it exists. */
export function listed(object: JsonObject): ObjectFacts {
  return { upstreamUpdatedAt: typeof object.created === 'number' ? timeAt(object.created, 'listed') : undefined, asOf: 'read' }
}
