import {
  SyncError,
  type ChangeAction,
  type ColumnType,
  type DestinationBatch,
  type DestinationChange,
  type DestinationMode,
  type DestinationPosition,
  type DestinationToken,
  type JsonObject,
  type TokenStep,
} from '../../contract/index.ts'
import { parseJson } from '../../values/json.ts'

/**
 * A request body: lines of JSON. The first line has the kind of the request, each further line one change:
 *
 *   {"kind":"position","tenant":"default","database":"customers"}
 *   {"kind":"remove","tenant":…,"database":…,"live":<token>,"loading":<token>}
 *   {"kind":"batch","tenant":…,"database":…,"mode":"mirror","columns":[{"member":"name","type":"text"}],
 *    "target":"live","is_first":false,"is_last":false,"previous":<token>,"next":<token>}
 *   {"key":"1","action":"created","sequence":7,"committed_at":1700000000000,"record":{"name":"Ada"}}
 *
 * A token is {"store_id":…,"epoch":…,"sequence":…,"committed_at":…,"after":…}. Times are in milliseconds. The response is
 * {"mode":…,"live":<token>,"loading":<token>}: the state after the request.
 */
export type HttpMessage =
  | (HttpCopy & { readonly kind: 'position' })
  | (HttpCopy & { readonly kind: 'remove'; readonly position: DestinationPosition })
  | (HttpCopy & { readonly kind: 'batch'; readonly batch: DestinationBatch; readonly step: TokenStep })

/** The database of a request. */
export interface HttpCopy {
  readonly tenant: string
  readonly database: string
}

/** The tokens of a copy, and the mode in which it is written; null before the first batch. */
export interface HttpPosition extends DestinationPosition {
  readonly mode: DestinationMode | null
}

export const CONTENT_TYPE = 'application/x-ndjson'

export function serializeMessage(message: HttpMessage, serialize = serializeChange): string {
  const { kind, tenant, database } = message
  switch (kind) {
    case 'position':
      return JSON.stringify({ kind, tenant, database })
    case 'remove':
      return JSON.stringify({ kind, tenant, database, ...toWirePosition(message.position) })
    case 'batch':
      return [serializeBatchHeader(message), ...message.batch.changes.map((change) => serialize(change))].join('\n')
    default:
      return kind satisfies never
  }
}

export function serializeBatchHeader({
  tenant,
  database,
  batch,
  step,
}: Extract<HttpMessage, { kind: 'batch' }>): string {
  const { schema, target, isFirst, isLast } = batch
  return JSON.stringify({
    kind: 'batch',
    tenant,
    database,
    mode: schema.mode,
    columns: schema.columns,
    target,
    is_first: isFirst,
    is_last: isLast,
    previous: toWireToken(step.previous),
    next: toWireToken(step.next),
  })
}

/** `record` is last: its exact text is then the rest of the line. */
export function serializeChange({ key, action, sequence, committedAt, text }: DestinationChange): string {
  // A line feed in JSON text is space between two values: inside a string it is escaped.
  const record = text?.includes('\n') === true ? text.replaceAll('\n', ' ') : (text ?? 'null')
  return `${JSON.stringify({ key, action, sequence, committed_at: committedAt }).slice(0, -1)}${RECORD}${record}}`
}

/** A quote inside a JSON string is escaped, so the first occurrence is the field. */
const RECORD = ',"record":'

/** Throws SyntaxError or DESTINATION_FAILED for anything that is not a message. */
export function parseMessage(body: string): HttpMessage {
  const [header = '', ...lines] = body.split('\n')
  const fields = toFields(JSON.parse(header))
  const copy = { tenant: toName(fields['tenant']), database: toName(fields['database']) }
  const kind = fields['kind']
  if (kind === 'position') return { kind, ...copy }
  if (kind === 'remove') return { kind, ...copy, position: parsePosition(fields) }
  if (kind !== 'batch') throw malformedError('kind')
  const next = parseToken(fields['next'])
  if (next === null) throw malformedError('next')
  return {
    kind,
    ...copy,
    batch: {
      schema: {
        database: copy.database,
        mode: oneOf(MODES, fields['mode'], 'mode'),
        columns: toList(fields['columns']).map((column) => ({
          member: toText(toFields(column)['member']),
          type: toText(toFields(column)['type']) as ColumnType,
        })),
      },
      target: oneOf(TARGETS, fields['target'], 'target'),
      isFirst: fields['is_first'] === true,
      isLast: fields['is_last'] === true,
      changes: lines.map(parseChange),
    },
    step: { previous: parseToken(fields['previous']), next },
  }
}

function parseChange(line: string): DestinationChange {
  const at = line.indexOf(RECORD)
  if (at < 0 || !line.endsWith('}')) throw malformedError('record')
  const text = line.slice(at + RECORD.length, -1)
  const fields = toFields(JSON.parse(`${line.slice(0, at)}}`))
  const isDelete = text === 'null'
  return {
    key: toText(fields['key']),
    action: oneOf(ACTIONS, fields['action'], 'action'),
    sequence: toInteger(fields['sequence']),
    committedAt: toInteger(fields['committed_at']),
    record: isDelete ? null : (parseJson(text) as JsonObject),
    text: isDelete ? null : text,
  }
}

export function serializePosition(position: HttpPosition): string {
  return JSON.stringify({ mode: position.mode, ...toWirePosition(position) })
}

/** Throws SyntaxError or DESTINATION_FAILED for anything that is not a position. */
export function parseHttpPosition(text: string): HttpPosition {
  const fields = toFields(JSON.parse(text))
  const mode = fields['mode']
  return { mode: mode === null ? null : oneOf(MODES, mode, 'mode'), ...parsePosition(fields) }
}

function parsePosition(fields: Fields): DestinationPosition {
  return { live: parseToken(fields['live']), loading: parseToken(fields['loading']) }
}

function toWirePosition({ live, loading }: DestinationPosition): Record<string, unknown> {
  return { live: toWireToken(live), loading: toWireToken(loading) }
}

function toWireToken(token: DestinationToken | null): Record<string, unknown> | null {
  if (token === null) return null
  const { storeId, epoch, sequence, committedAt, after } = token
  return { store_id: storeId, epoch, sequence, committed_at: committedAt, after }
}

function parseToken(value: unknown): DestinationToken | null {
  if (value === null) return null
  const fields = toFields(value)
  const after = fields['after']
  return {
    storeId: toText(fields['store_id']),
    epoch: toInteger(fields['epoch']),
    sequence: toInteger(fields['sequence']),
    committedAt: toInteger(fields['committed_at']),
    after: after === null ? null : toText(after),
  }
}

type Fields = Readonly<Record<string, unknown>>

const MODES: readonly DestinationMode[] = ['mirror', 'append', 'history']
const TARGETS: ReadonlyArray<DestinationBatch['target']> = ['live', 'loading']
const ACTIONS: readonly ChangeAction[] = ['created', 'updated', 'deleted']

function toFields(value: unknown): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw malformedError('object')
  return value as Fields
}

function toList(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw malformedError('list')
  return value
}

function toText(value: unknown): string {
  if (typeof value !== 'string') throw malformedError('text')
  return value
}

/** Receivers build the name of a table from it. */
function toName(value: unknown): string {
  const text = toText(value)
  if (!/^[A-Za-z0-9][\w.-]{0,62}$/.test(text)) throw malformedError('name')
  return text
}

function toInteger(value: unknown): number {
  if (!Number.isSafeInteger(value)) throw malformedError('integer')
  return value as number
}

function oneOf<Value>(values: readonly Value[], value: unknown, what: string): Value {
  const found = values.find((candidate) => candidate === value)
  if (found === undefined) throw malformedError(what)
  return found
}

function malformedError(what: string): SyncError {
  return new SyncError(
    'DESTINATION_FAILED',
    `The text is not a message of this protocol: ${what} is missing or invalid.`,
  )
}
