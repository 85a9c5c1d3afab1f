import type { SyncContext } from '../../contract/index.ts'
import type { StructuredType } from './metadata.ts'
import { isCursorType } from './entity-set-plan.ts'
import { ODataService } from './service.ts'
import type { ODataOptions } from './source.ts'

/** An entity set that can be read, and how. */
export interface DiscoveredStream {
  readonly id: string
  /** Empty when the service names none: then `key` has to be given. */
  readonly key: string[]
  /** What its name and type say is raised by every change; without one, delta links or a full refresh are the way. */
  readonly cursor?: string
  /** Everything that could be a cursor, for somebody who knows the service. */
  readonly candidates: string[]
}

/** Every entity set of a service. */
export async function discover(options: ODataOptions, context: Pick<SyncContext, 'fetch' | 'clock' | 'secrets' | 'signal'>): Promise<DiscoveredStream[]> {
  // One question outside of any cycle: it needs nothing else of a context.
  const { entitySets: sets } = await new ODataService(options).fetchMetadata(context as SyncContext)
  return [...sets].map(([id, type]) => ({ id, key: [...type.key], ...findCursors(type) }))
}

/** As people call the moment of the last change. */
const UPDATED_AT_NAME = /^(?:sys(?:tem)?_?)?(?:last_?)?(?:updated?|modif(?:y|ied)|changed?|modstamp)(?:_?(?:at|on|time|date|date_?time|ts|timestamp))?$/i

function findCursors({ properties }: StructuredType): Pick<DiscoveredStream, 'cursor' | 'candidates'> {
  const candidates = [...properties.values()].filter(({ type, isSortable: isOrdered }) => isOrdered && isCursorType(type))
  // A day says less than a moment.
  const named = candidates.filter(({ name }) => UPDATED_AT_NAME.test(name)).toSorted((a, b) => Number(a.type === 'Edm.Date') - Number(b.type === 'Edm.Date'))[0]
  return { ...(named !== undefined && { cursor: named.name }), candidates: candidates.map(({ name }) => name) }
}
