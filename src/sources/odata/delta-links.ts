import { SyncError, type Change, type JsonObject, type SyncContext } from '../../contract/index.ts'
import { token, type AnchoredExecute, type TokenState } from '../../strategies/index.ts'
import { withLaggedTidemark } from '../../strategies/kit/lagged-tidemark.ts'
import { isObject } from '../kit/classify-response.ts'
import { toChange, normalizeKeyPart, formatKey, toRow, type EntitySetPlan } from './entity-set-plan.ts'
import { buildEntityPath, buildQueryPath } from './query.ts'
import type { EntitySet } from './entity-set.ts'

/**
 * By the service's own delta links. The first cycle reads all there is; its last page, and that of every cycle after it, has
 * the link that tells what changed since the reading began. A link that the service no longer takes is HISTORY_LOST: the
 * backfill finds what was deleted meanwhile.
 *
 * The anchor is the second page of such a first reading: it begins before the backfill does, so that whatever is deleted
 * behind the backfill's back is in a delta. What is on the first page, the backfill reads itself. That reading is older than
 * the cycle that ends it, so the cycle goes on with the delta link at its end before it is complete.
 */
export function createDeltaLinkDelta(entitySet: EntitySet): AnchoredExecute<TokenState> {
  const execute = withLaggedTidemark(token({
    async read({ token: position }, context) {
      const plan = await entitySet.loadPlan(context)
      const isAnchored = position?.startsWith(ANCHOR_PREFIX) === true
      const link = isAnchored ? position.slice(ANCHOR_PREFIX.length) : position
      const { entities, next, resume } = await readPage(entitySet, plan, link, context)
      const changes: Change[] = []
      for (const entity of entities) {
        const change = await parseDeltaEntity(entity, entitySet, plan, context)
        if (change !== null) changes.push(change)
      }
      if (isAnchored) return { changes, next: next === null ? resume : ANCHOR_PREFIX + next }
      return { changes, next, resume }
    },
  }), LAG_MS)
  return Object.assign(execute, {
    anchor: async (context: SyncContext) => {
      const { next, resume } = await readPage(entitySet, await entitySet.loadPlan(context), undefined, context)
      return { cursor: next === null ? resume : ANCHOR_PREFIX + next }
    },
  })
}

/** Before the link to a page of the reading that the anchor began. */
const ANCHOR_PREFIX = 'anchored '

/** How long a change may take until the service tells it; nothing in the protocol says. */
const LAG_MS = 30_000

interface DeltaPage {
  readonly entities: readonly JsonObject[]
  readonly next: string | null
  readonly resume: string | null
}

async function readPage({ service, limit }: EntitySet, plan: EntitySetPlan, link: string | undefined, context: SyncContext): Promise<DeltaPage> {
  const { set, metadata: { version } } = plan
  if (version !== 4) throw new SyncError('SYNC_INVALID', `${set}: delta links are of version 4, and the service speaks version ${version}. Follow it by a cursor.`)
  const page = await service.fetchPage(link ?? buildQueryPath(plan), version, context, { prefer: ['odata.track-changes', `odata.maxpagesize=${limit}`], answers: link === undefined ? [] : EXPIRED_LINK_STATUSES })
  if (page === null) throw new SyncError('HISTORY_LOST', `The service no longer tells what changed in ${set} since the stored position.`)
  const next = page.nextLink === null ? null : service.resolveLink(page.nextLink, page, context)
  const resume = page.deltaLink === null ? null : service.resolveLink(page.deltaLink, page, context)
  if (next === null && resume === null) throw new SyncError('SOURCE_INVALID', `${set}: the last page has no delta link. If the service does not track changes of it, follow it by a cursor.`)
  return { entities: page.entities, next, resume }
}

/** 410 is what the rules say. But whoever refuses a link of its own making, has forgotten what it stood for. */
const EXPIRED_LINK_STATUSES = [400, 404, 410]

/** Null for what is not about an entity of the set. */
async function parseDeltaEntity(entity: JsonObject, entitySet: EntitySet, plan: EntitySetPlan, context: SyncContext): Promise<Change | null> {
  const about = String(entity['@odata.context'] ?? entity['@context'] ?? '')
  if (/\/\$(?:link|deletedLink)$/.test(about)) return null
  const isDeleted = about.endsWith('/$deletedEntity')
  if (isDeleted || isObject(entity['@removed'] ?? entity['@odata.removed'])) return { type: 'delete', key: formatKey(parseRemovedKey(entity, plan, isDeleted)) }
  const row = toRow(entity, plan)
  const isWhole = (plan.select ?? [...plan.type.properties.keys()]).every((name) => Object.hasOwn(entity, name) || plan.type.properties.get(name)!.type === 'Edm.Stream')
  if (isWhole) return toChange(row, plan)
  // A changed entity may come with what changed alone. It is read as it is now; when it is gone by now, a later page says so.
  const whole = await entitySet.service.fetchEntity(buildEntityPath(plan, row.keyParts), plan.metadata.version, context)
  return whole === null ? null : toChange(toRow(whole, plan), plan)
}

/** Of an entity that was removed: by its key's own properties, or by the id it had, `Orders(7)`, `Lines(Order=7,No=1)` or bare. As of 4.0 a member `id` is the latter. */
function parseRemovedKey(entity: JsonObject, plan: EntitySetPlan, isById: boolean): readonly string[] {
  const { set, key } = plan
  if (!isById && key.every(({ name }) => Object.hasOwn(entity, name))) return toRow(entity, plan).keyParts
  const id = entity['@odata.id'] ?? entity['@id'] ?? entity.id
  const parts = typeof id === 'string' ? parseKeyPredicate(id, plan) : null
  if (parts === null) throw new SyncError('SOURCE_INVALID', `${set}: an entity was removed whose key cannot be told.`)
  return parts
}

function parseKeyPredicate(id: string, { key }: EntitySetPlan): string[] | null {
  const predicate = /\(((?:[^()']|'[^']*')*)\)$/.exec(decodeUri(id))?.[1]
  if (predicate === undefined) return key.length > 1 || id.includes('(') ? null : [normalizeKeyPart(decodeUri(id.slice(id.lastIndexOf('/') + 1)), key[0]!.type)]
  const values = new Map<string, string>()
  for (const [, name, quoted, bare] of predicate.matchAll(/(?:^|,)(?:(\w+)=)?(?:'((?:[^']|'')*)'|([^',]+))/g)) {
    values.set(name ?? key[0]!.name, quoted === undefined ? bare! : quoted.replaceAll("''", "'"))
  }
  const parts = key.flatMap(({ name, type }) => (values.has(name) ? [normalizeKeyPart(values.get(name)!, type)] : []))
  return values.size === key.length && parts.length === key.length ? parts : null
}

function decodeUri(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
