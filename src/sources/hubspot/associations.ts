import {
  SyncError,
  type Change,
  type Execute,
  type JsonObject,
  type JsonValue,
  type SyncContext,
  type TableShape,
} from '../../contract/index.ts'
import type { TokenState } from '../../strategies/index.ts'
import { isObject } from '../kit/classify-response.ts'
import { stateRejectedError } from '../../strategies/kit/strategy-errors.ts'

/** The list of objects, and the objects of its last page that have more associations. */
export interface AssociationsState {
  /** Absent before the first page of the list. */
  readonly list?: TokenState
  readonly isListed?: true
  readonly pending?: readonly BatchInput[]
}

interface BatchInput {
  readonly id: string
  /** Where the associations of the object continue. */
  readonly after?: string
}

export interface AssociationsOptions {
  /** Lists the objects whose associations are read. */
  readonly objects: Execute<TokenState>
  /** Reads the associations of up to 1,000 objects. */
  readonly readBatch: (inputs: readonly BatchInput[], context: SyncContext) => Promise<JsonValue>
}

/**
 * A listing of the associations between two types. A change of an association has no time and is in no search, so all of
 * them are read: a page of objects, then their associations, then the rest of those that have more than a response holds.
 */
export function listAssociations({ objects, readBatch }: AssociationsOptions): Execute<AssociationsState> {
  return async (state = {}, context) => {
    const { list, isListed, pending = [] } = readState(state)
    if (pending.length > 0) {
      const { changes, rest } = readResults(await readBatch(pending, context), pending)
      const hasMore = rest.length > 0 || isListed !== true
      return { changes, hasMore, tables: TABLES, ...(hasMore && { nextState: { ...state, pending: rest } }) }
    }
    if (isListed === true) return { changes: [], hasMore: false }
    const page = await objects(list, context)
    const inputs = page.changes.map(({ key }) => ({ id: String(key) }))
    const { changes, rest } =
      inputs.length === 0 ? { changes: [], rest: [] } : readResults(await readBatch(inputs, context), inputs)
    const next: AssociationsState = {
      ...(page.nextState !== undefined && { list: page.nextState }),
      ...(!page.hasMore && { isListed: true }),
      pending: rest,
    }
    return { ...page, changes, hasMore: page.hasMore || rest.length > 0, nextState: next, tables: TABLES }
  }
}

const TABLES: readonly TableShape[] = [
  {
    columns: [
      { name: 'id', type: 'text' },
      { name: 'fromObjectId', type: 'text' },
      { name: 'toObjectId', type: 'text' },
      { name: 'associationTypes', type: 'json' },
    ],
    key: ['id'],
  },
]

/** Every requested object is answered: with its associations, or with the error that it has none. */
function readResults(body: JsonValue, inputs: readonly BatchInput[]): { changes: Change[]; rest: BatchInput[] } {
  const { results, errors = [] } = isObject(body) ? body : {}
  if (!isObjectList(results) || !isObjectList(errors))
    throw new SyncError('SOURCE_INVALID', 'HubSpot returned a response without associations.')
  const open = new Set(inputs.map(({ id }) => id))
  const close = (id: JsonValue | undefined): string => {
    if (typeof id !== 'string' || !open.delete(id))
      throw new SyncError('SOURCE_INVALID', 'HubSpot returned associations of an object that was not requested.')
    return id
  }
  const changes: Change[] = []
  const rest: BatchInput[] = []
  for (const { from, to, paging } of results) {
    const fromId = close(isObject(from) ? from.id : undefined)
    if (!isObjectList(to)) throw new SyncError('SOURCE_INVALID', 'HubSpot returned an object without associations.')
    for (const association of to) changes.push(toUpsert(fromId, association))
    const next = isObject(paging) && isObject(paging.next) ? paging.next.after : undefined
    if (typeof next === 'string') rest.push({ id: fromId, after: next })
  }
  for (const { subCategory, context } of errors) {
    if (subCategory !== 'crm.associations.NO_ASSOCIATIONS_FOUND') continue
    const ids = isObject(context) ? context.fromObjectId : undefined
    for (const id of Array.isArray(ids) ? ids : []) close(id)
  }
  if (open.size > 0)
    throw new SyncError(
      'SOURCE_INVALID',
      `HubSpot returned no result for ${open.size} of ${inputs.length} objects: the response is incomplete.`,
    )
  return { changes, rest }
}

function toUpsert(fromObjectId: string, { toObjectId: to, associationTypes = null }: JsonObject): Change {
  if (typeof to !== 'string' && typeof to !== 'number' && typeof to !== 'bigint')
    throw new SyncError('SOURCE_INVALID', 'HubSpot returned an association without `toObjectId`.')
  const toObjectId = String(to)
  const id = `${fromObjectId}-${toObjectId}`
  return { type: 'upsert', key: id, record: { id, fromObjectId, toObjectId, associationTypes } }
}

function isObjectList(value: JsonValue | undefined): value is JsonObject[] {
  return Array.isArray(value) && value.every(isObject)
}

/** The state may have been edited. */
function readState(state: AssociationsState): AssociationsState {
  const { pending = [] } = state
  const isValid =
    Array.isArray(pending) &&
    pending.every(
      (input: Partial<BatchInput> | null) => typeof input?.id === 'string' && typeof input.after === 'string',
    )
  if (!isValid) throw stateRejectedError('hubspot', '`pending` is not a list of objects')
  return state
}
