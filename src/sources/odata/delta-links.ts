import { SyncError, type Change, type JsonObject, type SyncContext } from '../../contract/index.ts'
import { token, type AnchoredExecute, type TokenState } from '../../strategies/index.ts'
import { withLaggedTidemark } from '../../strategies/kit/lagged-tidemark.ts'
import { isObject } from '../kit/classify-response.ts'
import { toChange, normalizeKeyPart, formatKey, toRow, type EntitySetPlan } from './entity-set-plan.ts'
import { buildEntityPath, buildQueryPath } from './query.ts'
import type { EntitySet } from './entity-set.ts'

/**
 * Follows the service's delta links. The first cycle reads everything; its last page, and that of every later cycle,
 * has the link to the changes since the read began. A link that the service no longer accepts is HISTORY_LOST: the
 * backfill then finds the deletions.
 *
 * The anchor is the second page of such a first read: it begins before the backfill, so everything deleted behind the
 * backfill is in a delta. The backfill covers the first page itself. That read is older than the cycle that ends it, so
 * the cycle also follows the delta link at its end before it completes.
 */
export function createDeltaLinkDelta(entitySet: EntitySet): AnchoredExecute<TokenState> {
  const execute = withLaggedTidemark(
    token({
      async read({ token: cursor }, context) {
        const plan = await entitySet.loadPlan(context)
        const isAnchored = cursor?.startsWith(ANCHOR_PREFIX) === true
        const link = isAnchored ? cursor.slice(ANCHOR_PREFIX.length) : cursor
        const { entities, next, resume } = await readPage(entitySet, plan, link, context)
        const changes: Change[] = []
        for (const entity of entities) {
          const change = await parseDeltaEntity(entity, entitySet, plan, context)
          if (change !== null) changes.push(change)
        }
        if (isAnchored) return { changes, next: next === null ? resume : ANCHOR_PREFIX + next }
        return { changes, next, resume }
      },
    }),
    LAG_MS,
  )
  return Object.assign(execute, {
    anchor: async (context: SyncContext) => {
      const { next, resume } = await readPage(entitySet, await entitySet.loadPlan(context), undefined, context)
      return { cursor: next === null ? resume : ANCHOR_PREFIX + next }
    },
  })
}

/** Prefix of a link to a page of the anchor's read. */
const ANCHOR_PREFIX = 'anchored '

/** Maximum delay before the service reports a change; the protocol does not define one. */
const LAG_MS = 30_000

interface DeltaPage {
  readonly entities: readonly JsonObject[]
  readonly next: string | null
  readonly resume: string | null
}

async function readPage(
  { service, limit }: EntitySet,
  plan: EntitySetPlan,
  link: string | undefined,
  context: SyncContext,
): Promise<DeltaPage> {
  const {
    set,
    metadata: { version },
  } = plan
  if (version !== 4)
    throw new SyncError(
      'SYNC_INVALID',
      `${set}: delta links need OData version 4, but the service uses version ${version}. Use \`entitySet\` with a cursor.`,
    )
  const page = await service.fetchPage(link ?? buildQueryPath(plan), version, context, {
    prefer: ['odata.track-changes', `odata.maxpagesize=${limit}`],
    answers: link === undefined ? [] : EXPIRED_LINK_STATUSES,
  })
  if (page === null)
    throw new SyncError('HISTORY_LOST', `The service no longer accepts the stored delta link of ${set}.`)
  const next = page.nextLink === null ? null : service.resolveLink(page.nextLink, page, context)
  const resume = page.deltaLink === null ? null : service.resolveLink(page.deltaLink, page, context)
  if (next === null && resume === null)
    throw new SyncError(
      'SOURCE_INVALID',
      `${set}: the last page has no delta link. If the service does not track its changes, use \`entitySet\` with a cursor.`,
    )
  return { entities: page.entities, next, resume }
}

/** The standard status is 410, but some services reject their own expired links with 400 or 404. */
const EXPIRED_LINK_STATUSES = [400, 404, 410]

/** Returns null for items that are not entities of the set. */
async function parseDeltaEntity(
  entity: JsonObject,
  entitySet: EntitySet,
  plan: EntitySetPlan,
  context: SyncContext,
): Promise<Change | null> {
  const contextUrl = String(entity['@odata.context'] ?? entity['@context'] ?? '')
  if (/\/\$(?:link|deletedLink)$/.test(contextUrl)) return null
  const isDeleted = contextUrl.endsWith('/$deletedEntity')
  if (isDeleted || isObject(entity['@removed'] ?? entity['@odata.removed']))
    return { type: 'delete', key: formatKey(parseRemovedKey(entity, plan, isDeleted)) }
  const row = toRow(entity, plan)
  const isComplete = (plan.select ?? [...plan.type.properties.keys()]).every(
    (name) => Object.hasOwn(entity, name) || plan.type.properties.get(name)?.type === 'Edm.Stream',
  )
  if (isComplete) return toChange(row, plan)
  // A changed entity may contain only the changed properties, so its current version is read. If it has been deleted
  // meanwhile, a later page reports that.
  const complete = await entitySet.service.fetchEntity(
    buildEntityPath(plan, row.keyParts),
    plan.metadata.version,
    context,
  )
  return complete === null ? null : toChange(toRow(complete, plan), plan)
}

/**
 * Reads the key of a removed entity from its key properties, or from its id: `Orders(7)`, `Lines(Order=7,No=1)` or
 * bare. In version 4.0 the field `id` is the latter.
 */
function parseRemovedKey(entity: JsonObject, plan: EntitySetPlan, isById: boolean): readonly string[] {
  const { set, key } = plan
  if (!isById && key.every(({ name }) => Object.hasOwn(entity, name))) return toRow(entity, plan).keyParts
  const id = entity['@odata.id'] ?? entity['@id'] ?? entity.id
  const parts = typeof id === 'string' ? parseKeyPredicate(id, plan) : null
  if (parts === null) throw new SyncError('SOURCE_INVALID', `${set}: the key of a removed entity cannot be determined.`)
  return parts
}

function parseKeyPredicate(id: string, { key }: EntitySetPlan): string[] | null {
  const [firstKey] = key
  if (firstKey === undefined) return null
  const predicate = /\(((?:[^()']|'[^']*')*)\)$/.exec(decodeUri(id))?.[1]
  if (predicate === undefined)
    return key.length > 1 || id.includes('(')
      ? null
      : [normalizeKeyPart(decodeUri(id.slice(id.lastIndexOf('/') + 1)), firstKey.type)]
  const values = new Map<string, string>()
  for (const [, name, quoted, bare] of predicate.matchAll(/(?:^|,)(?:(\w+)=)?(?:'((?:[^']|'')*)'|([^',]+))/g)) {
    values.set(name ?? firstKey.name, quoted === undefined ? (bare ?? '') : quoted.replaceAll("''", "'"))
  }
  const parts = key.flatMap(({ name, type }) => {
    const value = values.get(name)
    return value === undefined ? [] : [normalizeKeyPart(value, type)]
  })
  return values.size === key.length && parts.length === key.length ? parts : null
}

function decodeUri(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
