import { SyncError } from '../../contract/index.ts'
import { AUTH_SCHEMA, createAuth } from '../kit/config-auth.ts'
import { COUNT_SCHEMA, objectSchema, TEXT_SCHEMA } from '../../values/config-schema.ts'
import { defineSource } from '../kit/define-source.ts'
import { omitUndefined } from '../kit/omit-undefined.ts'
import { SINCE_SCHEMA } from '../kit/since.ts'
import { resolveStreamName } from '../kit/select-stream.ts'

/** Entity sets of OData services. */
export default defineSource({
  name: 'odata',
  title: 'OData',
  times: { since: true, range: true },
  config: objectSchema(
    {
      url: { ...TEXT_SCHEMA, description: 'the root URL of the service; ${NAME} is read from the environment' },
      auth: AUTH_SCHEMA,
      query: { type: 'object', additionalProperties: { type: 'string' } },
      since: SINCE_SCHEMA,
    },
    ['url'],
  ),
  streams: {
    options: objectSchema({
      entity_set: TEXT_SCHEMA,
      filter: TEXT_SCHEMA,
      deleted: TEXT_SCHEMA,
      page_size: COUNT_SCHEMA,
      lag_ms: { type: 'integer', minimum: 0 },
      exact_cursor: { type: 'boolean' },
      delta_links: { type: 'boolean' },
      since: SINCE_SCHEMA,
    }),
  },
  async open({ url, auth, query, since }, { tokens }) {
    const { odata, discover } = await import('./source.ts')
    const options = { url, ...omitUndefined({ query, since }), ...(await createAuth(auth, tokens)) }
    return { options, source: odata(options), discover }
  },
  stream({ source, options: { since: sourceSince } }, declaration) {
    const { key, cursor, mode, select, safety_window: safetyWindow, options = {} } = declaration
    const {
      filter,
      deleted,
      page_size: pageSize,
      lag_ms: lagMs,
      exact_cursor: exactCursor,
      delta_links: isTracked = false,
      since,
    } = options
    const name = resolveStreamName(declaration, 'entity_set')
    const shared = omitUndefined({ key, select, filter, pageSize })
    if (isTracked && (cursor ?? deleted ?? safetyWindow ?? since) !== undefined)
      throw new SyncError(
        'SYNC_INVALID',
        'delta links exclude `cursor`, `deleted`, `since` and `safety_window`; remove these options',
      )
    if (isTracked && mode !== 'full_refresh') return source.tracked(name, shared)
    if (mode === 'full_refresh' || cursor === undefined)
      return source.listing(name, {
        ...shared,
        ...omitUndefined({ deleted, since }),
        ...((since ?? sourceSince) !== undefined && omitUndefined({ cursor })),
      })
    return source.entitySet(name, {
      ...shared,
      cursor,
      ...omitUndefined({ deleted, safetyWindow, lagMs, exactCursor, since }),
    })
  },
  discover: ({ options, discover }, context) => discover(options, context),
  template: {
    rank: 160,
    label: 'An OData service',
    settings: { ODATA_USER: 'the user; set the service URL in worker.ts', ODATA_PASSWORD: 'the password' },
    database: 'accounts',
  },
})
