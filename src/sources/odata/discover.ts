import type { SyncContext } from '../../contract/index.ts'
import type { StructuredType } from './metadata.ts'
import { isCursorType } from './entity-set-plan.ts'
import { ODataService } from './service.ts'
import type { ODataOptions } from './source.ts'

/** A readable entity set, with its key and possible cursors. */
export interface DiscoveredStream {
  readonly id: string
  /** Empty when the service declares none: set `key` then. */
  readonly key: string[]
  /**
   * The property whose name and type suggest that every change increases it. Without one, use delta links or a full
   * refresh.
   */
  readonly cursor?: string
  /** All properties that could be a cursor. */
  readonly candidates: string[]
}

/** Lists the entity sets of a service with their keys and possible cursors, from its `$metadata`. */
export async function discover(
  options: ODataOptions,
  context: Pick<SyncContext, 'fetch' | 'clock' | 'secrets' | 'signal'>,
): Promise<DiscoveredStream[]> {
  // A single request outside any cycle needs no other part of the context.
  const { entitySets } = await new ODataService(options).fetchMetadata(context as SyncContext)
  return [...entitySets].map(([id, type]) => ({ id, key: [...type.key], ...findCursors(type) }))
}

/** Common names for the time of the last change. */
const UPDATED_AT_NAME =
  /^(?:sys(?:tem)?_?)?(?:last_?)?(?:updated?|modif(?:y|ied)|changed?|modstamp)(?:_?(?:at|on|time|date|date_?time|ts|timestamp))?$/i

function findCursors({ properties }: StructuredType): Pick<DiscoveredStream, 'cursor' | 'candidates'> {
  const candidates = [...properties.values()].filter(({ type, isSortable }) => isSortable && isCursorType(type))
  // Prefer a timestamp over a date.
  const named = candidates
    .filter(({ name }) => UPDATED_AT_NAME.test(name))
    .toSorted((a, b) => Number(a.type === 'Edm.Date') - Number(b.type === 'Edm.Date'))[0]
  return { ...(named !== undefined && { cursor: named.name }), candidates: candidates.map(({ name }) => name) }
}
