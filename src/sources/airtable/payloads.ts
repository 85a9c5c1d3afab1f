import {
  SyncError,
  type Change,
  type Execute,
  type JsonObject,
  type JsonValue,
  type SyncContext,
} from '../../contract/index.ts'
import { token as byToken, type TokenState } from '../../strategies/index.ts'
import type { AnchoredExecute } from '../../strategies/kit/anchored-execute.ts'
import { isObject } from '../kit/classify-response.ts'
import type { HttpClient } from '../kit/http-client.ts'
import { path } from '../kit/origin.ts'
import { withoutTidemark } from '../../strategies/kit/without-tidemark.ts'

/** How long Airtable keeps the payloads of a webhook, and a webhook that is not read. */
export const PAYLOAD_RETENTION_MS = 7 * 86_400_000
/** Each payload may name many records, which are read in the same page. */
const PAYLOADS_PER_PAGE = 20
const RECORDS_PER_REQUEST = 100
const LIST_PAGES_MAX = 20

export interface PayloadOptions {
  readonly client: HttpClient
  readonly baseId: string
  readonly tableId: string
  readonly webhookId: string
  readonly toUpsert: (record: JsonValue) => Change
}

/**
 * Follows the payloads of a webhook, which are numbered without gaps. A payload names the records that changed; their
 * current versions are read from the table. Without a state it begins at the next payload.
 */
export function followPayloads(options: PayloadOptions): AnchoredExecute<TokenState> {
  const anchor = async (context: SyncContext): Promise<TokenState> => ({
    cursor: await readNextCursor(options, context),
  })
  const list = byToken({
    read: async ({ token: cursor = '1' }, context) => {
      const page = await readPayloads(options, cursor, context)
      return {
        changes: await toChanges(options, page.payloads, context),
        next: page.mightHaveMore ? page.cursor : null,
        resume: page.cursor,
      }
    },
  })
  const execute: Execute<TokenState> = async (state, context) =>
    state === undefined ? { changes: [], hasMore: false, nextState: await anchor(context) } : list(state, context)
  return withoutTidemark(Object.assign(execute, { anchor, startsAtEnd: true, retentionMs: PAYLOAD_RETENTION_MS }))
}

async function readNextCursor({ client, baseId, webhookId }: PayloadOptions, context: SyncContext): Promise<string> {
  const { body } = await client.get(path`/bases/${baseId}/webhooks`, {}, context)
  const webhooks = isObject(body) && Array.isArray(body.webhooks) ? body.webhooks.filter(isObject) : []
  const webhook = webhooks.find(({ id }) => id === webhookId)
  if (webhook === undefined || typeof webhook.cursorForNextPayload !== 'number')
    throw new SyncError(
      'CONNECTOR_FAILED',
      `The Airtable base has no webhook ${webhookId}, or it has expired. Create one and set its id.`,
    )
  if (webhook.isHookEnabled === false)
    throw new SyncError('CONNECTOR_FAILED', `The Airtable webhook ${webhookId} is disabled. Enable it.`)
  return String(webhook.cursorForNextPayload)
}

interface PayloadPage {
  readonly payloads: readonly JsonObject[]
  readonly cursor: string
  readonly mightHaveMore: boolean
}

async function readPayloads(
  { client, baseId, webhookId }: PayloadOptions,
  cursor: string,
  context: SyncContext,
): Promise<PayloadPage> {
  const { body } = await client.get(
    path`/bases/${baseId}/webhooks/${webhookId}/payloads`,
    { cursor, limit: PAYLOADS_PER_PAGE },
    context,
  )
  if (
    !isObject(body) ||
    !Array.isArray(body.payloads) ||
    !body.payloads.every(isObject) ||
    typeof body.cursor !== 'number' ||
    typeof body.mightHaveMore !== 'boolean'
  )
    throw new SyncError('SOURCE_INVALID', 'Airtable returned a response without webhook payloads.')
  const { payloads, mightHaveMore } = body
  if (payloads.some(({ error }) => error === true)) throw createLostError('the webhook reports an error of its own')
  const first = body.cursor - payloads.length
  // Without payloads the cursor is the requested one: a list that was emptied is a wrong answer.
  if (payloads.length > 0 && first > Number(cursor))
    throw createLostError('earlier payloads of the webhook were deleted')
  // A page that begins earlier answers another request.
  if (first !== Number(cursor))
    throw new SyncError('SOURCE_INVALID', 'Airtable returned other webhook payloads than the requested ones.')
  return { payloads, cursor: String(body.cursor), mightHaveMore }
}

/** The last change of each record, in the order of the payloads. */
async function toChanges(
  options: PayloadOptions,
  payloads: readonly JsonObject[],
  context: SyncContext,
): Promise<Change[]> {
  const last = new Map<string, { readonly isDeleted: boolean; readonly at: string }>()
  for (const { timestamp, changedTablesById, destroyedTableIds } of payloads) {
    if (typeof timestamp !== 'string') throw new SyncError('SOURCE_INVALID', 'An Airtable payload has no `timestamp`.')
    if (Array.isArray(destroyedTableIds) && destroyedTableIds.includes(options.tableId))
      throw createLostError('the table was deleted')
    const change = isObject(changedTablesById) ? changedTablesById[options.tableId] : undefined
    if (!isObject(change)) continue
    // A new name of a field changes every record, and no payload names them.
    if (isObject(change.changedFieldsById) || Array.isArray(change.destroyedFieldIds))
      throw createLostError('fields of the table were changed or deleted')
    for (const id of [...keysOf(change.createdRecordsById), ...keysOf(change.changedRecordsById)])
      last.set(id, { isDeleted: false, at: timestamp })
    for (const id of Array.isArray(change.destroyedRecordIds) ? change.destroyedRecordIds : [])
      last.set(String(id), { isDeleted: true, at: timestamp })
  }
  const kept = [...last].filter(([, { isDeleted }]) => !isDeleted).map(([id]) => id)
  const records = new Map<string, Change>()
  for (let start = 0; start < kept.length; start += RECORDS_PER_REQUEST)
    for (const change of await readRecords(options, kept.slice(start, start + RECORDS_PER_REQUEST), context))
      records.set(String(change.key), change)
  // An empty list may be wrong, and the cursor passes the payload: a missing record is read by itself.
  for (const id of kept) if (!records.has(id)) await readRecord(options, id, records, context)
  return [...last].flatMap(([key, { isDeleted, at }]): Change[] => {
    if (isDeleted) return [{ type: 'delete', key, upstreamUpdatedAt: at }]
    // A record that is gone by now has a later payload.
    const change = records.get(key)
    return change?.type === 'upsert' ? [{ ...change, upstreamUpdatedAt: at, asOf: 'read' }] : []
  })
}

async function readRecord(
  { client, baseId, tableId, toUpsert }: PayloadOptions,
  id: string,
  records: Map<string, Change>,
  context: SyncContext,
): Promise<void> {
  const { status, body } = await client.get(path`/${baseId}/${tableId}/${id}`, {}, context, { answers: [403, 404] })
  if (status < 400) records.set(id, toUpsert(body))
}

async function readRecords(
  { client, baseId, tableId, toUpsert }: PayloadOptions,
  ids: readonly string[],
  context: SyncContext,
): Promise<Change[]> {
  const formula = `OR(${ids.map((id) => `RECORD_ID()='${requireRecordId(id)}'`).join(',')})`
  const found: Change[] = []
  let offset: string | undefined
  for (let pages = 0; pages < LIST_PAGES_MAX; pages++) {
    const request = { filterByFormula: formula, pageSize: RECORDS_PER_REQUEST, ...(offset !== undefined && { offset }) }
    const { body } = await client.post(path`/${baseId}/${tableId}/listRecords`, request, context)
    if (!isObject(body) || !Array.isArray(body.records))
      throw new SyncError('SOURCE_INVALID', 'Airtable returned a response without records.')
    found.push(...body.records.map(toUpsert))
    if (typeof body.offset !== 'string') return found
    offset = body.offset
  }
  throw new SyncError('SOURCE_INVALID', 'Airtable does not end the list of the records that changed.')
}

/** It becomes part of a formula. */
function requireRecordId(id: string): string {
  if (!/^rec\w+$/.test(id)) throw new SyncError('SOURCE_INVALID', 'An Airtable payload has an invalid record id.')
  return id
}

function keysOf(value: JsonValue | undefined): string[] {
  return isObject(value) ? Object.keys(value) : []
}

function createLostError(reason: string): SyncError {
  return new SyncError(
    'HISTORY_LOST',
    `Airtable: ${reason}, so changes may be missing. A backfill reads the table again.`,
  )
}
