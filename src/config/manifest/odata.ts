import { SyncError } from '../../contract/index.ts'
import { AUTH_SCHEMA, createAuth } from './auth.ts'
import {
  COUNT_SCHEMA,
  omitUndefined,
  resolveStreamName,
  objectSchema,
  TEXT_SCHEMA,
  type Connector,
} from './connector.ts'

/** Entity sets of OData services. */
export const odata: Connector = {
  config: objectSchema(
    {
      url: { ...TEXT_SCHEMA, description: 'the root URL of the service; ${NAME} is read from the environment' },
      auth: AUTH_SCHEMA,
      query: { type: 'object', additionalProperties: { type: 'string' } },
    },
    ['url'],
  ),
  stream: {
    properties: {
      options: objectSchema({
        entity_set: TEXT_SCHEMA,
        filter: TEXT_SCHEMA,
        deleted: TEXT_SCHEMA,
        page_size: COUNT_SCHEMA,
        lag_ms: { type: 'integer', minimum: 0 },
        exact_cursor: { type: 'boolean' },
        delta_links: { type: 'boolean' },
      }),
    },
  },
  async open(config) {
    const { odata: open } = await import('../../sources/odata/source.ts')
    const source = open({ ...config, ...(await createAuth(config.auth)) })
    return {
      stream(stream) {
        const { key, cursor, mode, select, safety_window: safetyWindow, options = {} } = stream
        const {
          filter,
          deleted,
          page_size: pageSize,
          lag_ms: lagMs,
          exact_cursor: exactCursor,
          delta_links: isTracked = false,
        } = options as any
        const name = resolveStreamName(stream, 'entity_set')
        const shared = omitUndefined({ key, select, filter, pageSize })
        if (isTracked && (cursor ?? deleted ?? safetyWindow) !== undefined)
          throw new SyncError(
            'SYNC_INVALID',
            'delta links exclude `cursor`, `deleted` and `safety_window`; remove these options',
          )
        if (mode === 'full_refresh' || (cursor === undefined && !isTracked))
          return source.listing(name, { ...shared, ...omitUndefined({ deleted }) })
        return isTracked
          ? source.tracked(name, shared)
          : source.entitySet(name, {
              ...shared,
              cursor: cursor!,
              ...omitUndefined({ deleted, safetyWindow, lagMs, exactCursor }),
            })
      },
    }
  },
  async discover(config, _folder, context) {
    const { discover } = await import('../../sources/odata/source.ts')
    return discover({ ...config, ...(await createAuth(config.auth)) }, context)
  },
}
