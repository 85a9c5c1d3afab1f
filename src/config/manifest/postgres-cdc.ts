import {
  COUNT_SCHEMA,
  omitUndefined,
  applyMode,
  SET_BY_CONNECTOR,
  objectSchema,
  TEXT_SCHEMA,
  type Connector,
} from './connector.ts'
import { sql } from './sql.ts'

/** PostgreSQL logical replication. Every stream has its own slot and publication, because each has its own LSN. */
export const postgresCdc: Connector = {
  followsChanges: true,
  config: objectSchema({ url: (sql.config['properties'] as { url: object }).url as never }, ['url']),
  stream: {
    properties: {
      options: objectSchema({
        table: TEXT_SCHEMA,
        slot: TEXT_SCHEMA,
        publication: TEXT_SCHEMA,
        page_size: COUNT_SCHEMA,
      }),
      cursor: SET_BY_CONNECTOR,
      select: SET_BY_CONNECTOR,
      safety_window: {
        not: {},
        description: 'not supported by this connector: a log is ordered and continues at its LSN',
      },
    },
  },
  async open({ url }) {
    const { postgresCdc: open } = await import('../../sources/postgres-cdc/source.ts')
    return {
      stream(stream) {
        const {
          table = stream.id,
          slot = defaultSlotName(stream.id),
          publication = slot,
          page_size: pageSize,
        } = (stream.options ?? {}) as { table?: string; slot?: string; publication?: string; page_size?: number }
        return applyMode(
          open({
            url,
            tables: [{ table, ...omitUndefined({ key: stream.key }) }],
            slot,
            publication,
            ...omitUndefined({ pageSize }),
          }),
          stream,
        )
      },
    }
  },
  discover: (config, folder, context) => sql.discover!(config, folder, context),
}

/** A valid PostgreSQL slot name. */
function defaultSlotName(id: string): string {
  return `tidemark_${id.toLowerCase().replaceAll(/[^a-z0-9]/g, '_')}`.slice(0, 63)
}
