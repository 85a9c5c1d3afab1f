import { SyncError } from '../../contract/index.ts'
import { AUTH, authOf } from './auth.ts'
import { COUNT, given, nameIn, object, TEXT, type Connector } from './connector.ts'

/** Entity sets of OData services. */
export const odata: Connector = {
  config: object({
    url: { ...TEXT, description: 'the root of the service; ${NAME} in it is read from the environment' },
    auth: AUTH,
    query: { type: 'object', additionalProperties: { type: 'string' } },
  }, ['url']),
  stream: {
    properties: {
      options: object({ entity_set: TEXT, filter: TEXT, deleted: TEXT, page_size: COUNT, lag_ms: { type: 'integer', minimum: 0 }, exact_cursor: { type: 'boolean' }, delta_links: { type: 'boolean' } }),
    },
  },
  async open(config) {
    const { odata: open } = await import('../../sources/odata/source.ts')
    const source = open({ ...config, ...(await authOf(config.auth)) })
    return {
      stream(stream) {
        const { key, cursor, mode, select, safety_window: safetyWindow, options = {} } = stream
        const { filter, deleted, page_size: pageSize, lag_ms: lagMs, exact_cursor: exactCursor, delta_links: isTracked = false } = options as any
        const name = nameIn(stream, 'entity_set')
        const shared = given({ key, select, filter, pageSize })
        if (isTracked && (cursor ?? deleted ?? safetyWindow) !== undefined) throw new SyncError('SYNC_INVALID', 'delta links say all there is to say: with them there is no `cursor`, no `deleted` and no `safety_window`')
        if (mode === 'full_refresh' || (cursor === undefined && !isTracked)) return source.listing(name, { ...shared, ...given({ deleted }) })
        return isTracked ? source.tracked(name, shared) : source.entitySet(name, { ...shared, cursor: cursor!, ...given({ deleted, safetyWindow, lagMs, exactCursor }) })
      },
    }
  },
  async discover(config, _folder, context) {
    const { discover } = await import('../../sources/odata/source.ts')
    return discover({ ...config, ...(await authOf(config.auth)) }, context)
  },
}
