import { SyncError, type Change, type Execute, type JsonValue, type Lookup, type SyncContext, type TableShape } from '../../contract/index.ts'
import { token as byToken, type TokenState } from '../../strategies/index.ts'
import { bearer, type Auth, type SecretSource } from '../kit/auth.ts'
import { createHttpClient } from '../kit/http-client.ts'
import { isObject } from '../kit/classify-response.ts'
import { path } from '../kit/origin.ts'

export interface AirtableOptions {
  readonly baseId: string
  /** A personal access token, or the name of the secret that holds it. */
  readonly token?: SecretSource
  /** Instead of a token. */
  readonly auth?: Auth
  readonly baseUrl?: string
}

export interface AirtableSource {
  /** By its id rather than by its name, which may change. */
  table(idOrName: string): { readonly mode: 'replace'; readonly execute: Execute<TokenState>; readonly lookup: Lookup }
  /** The tables of the base, by their names; the token needs `schema.bases:read`. */
  discover(context: SyncContext): Promise<{ readonly id: string; readonly aliases: readonly string[]; readonly key: readonly string[]; readonly candidates: readonly string[] }[]>
}

/** After one request too many it refuses all of them for so long, and does not say so. */
const RATE_LIMIT_WAIT_MS = 30_000
const PAGE_SIZE = 100

/** All of it each time; what is no longer there is swept: `worker.sync('tasks', { database, ...airtable({ baseId, token: 'AIRTABLE_TOKEN' }).table('tbl…') })`. */
export function airtable({ baseId, token, auth, baseUrl = 'https://api.airtable.com/v0' }: AirtableOptions): AirtableSource {
  if ((token === undefined) === (auth === undefined)) throw new SyncError('SYNC_INVALID', 'Airtable needs either `token` or `auth`.')
  const client = createHttpClient({
    baseUrl,
    auth: auth ?? bearer(token!),
    classifyResponse: ({ status }) => (status === 429 ? { code: 'RATE_LIMITED', reason: 'its limit of requests', retryAfterMs: RATE_LIMIT_WAIT_MS } : null),
  })
  return {
    async discover(context) {
      const { body } = await client.get(path`/meta/bases/${baseId}/tables`, {}, context)
      if (!isObject(body) || !Array.isArray(body.tables) || !body.tables.every(isObject)) throw new SyncError('SOURCE_INVALID', 'Airtable answered without tables.')
      return body.tables.map(({ id, name }) => ({ id: String(name), aliases: [String(id)], key: ['id'], candidates: [] }))
    },
    table: (idOrName) => ({
      mode: 'replace',
      lookup: async (key, context) => {
        // To a reader who may not see it, or when it is none of this table, a record is refused and not missing.
        const { status, body } = await client.get(path`/${baseId}/${idOrName}/${key}`, {}, context, { answers: [403, 404] })
        return status >= 400 ? null : toUpsert(body)
      },
      execute: attachTableShape(byToken({
        limit: PAGE_SIZE,
        confirms: true,
        read: async ({ token: offset }, context) => {
          // An iteration that nobody continues for a while is over, and is begun again.
          const { body } = await client.get(path`/${baseId}/${idOrName}`, { pageSize: PAGE_SIZE, offset }, context, offset === undefined ? {} : { cursorRefusals: [422] })
          if (!isObject(body) || !Array.isArray(body.records)) throw new SyncError('SOURCE_INVALID', 'Airtable answered without records.')
          return { changes: body.records.map(toUpsert), next: typeof body.offset === 'string' ? body.offset : null }
        },
      })),
    }),
  }
}

function toUpsert(record: JsonValue): Change {
  if (!isObject(record) || typeof record.id !== 'string') throw new SyncError('SOURCE_INVALID', 'A record of Airtable has no id.')
  return { type: 'upsert', key: record.id, record }
}

/** The fields of a table are inside one member, so no metadata is needed for the types of the others. */
const TABLE_SHAPE: TableShape = { columns: [{ name: 'id', type: 'text' }, { name: 'createdTime', type: 'timestamp' }, { name: 'fields', type: 'json' }], key: ['id'] }

function attachTableShape(execute: Execute<TokenState>): Execute<TokenState> {
  return async (state, context) => ({ ...(await execute(state, context)), tables: [TABLE_SHAPE] })
}
