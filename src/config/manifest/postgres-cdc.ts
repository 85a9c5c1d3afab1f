import { COUNT_SCHEMA, omitUndefined, applyMode, SET_BY_CONNECTOR, objectSchema, TEXT_SCHEMA, type Connector } from './connector.ts'
import { sql } from './sql.ts'

/** The log of PostgreSQL: every stream has a slot and a publication of its own, because each has a place of its own. */
export const postgresCdc: Connector = {
  followsChanges: true,
  config: objectSchema({ url: (sql.config['properties'] as { url: object }).url as never }, ['url']),
  stream: { properties: { options: objectSchema({ table: TEXT_SCHEMA, slot: TEXT_SCHEMA, publication: TEXT_SCHEMA, page_size: COUNT_SCHEMA }), cursor: SET_BY_CONNECTOR, select: SET_BY_CONNECTOR, safety_window: { not: {}, description: 'of a connector that follows a cursor: a log keeps its order, and goes on where it stood' } } },
  async open({ url }) {
    const { postgresCdc: open } = await import('../../sources/postgres-cdc/source.ts')
    return {
      stream(stream) {
        const { table = stream.id, slot = defaultSlotName(stream.id), publication = slot, page_size: pageSize } = (stream.options ?? {}) as { table?: string; slot?: string; publication?: string; page_size?: number }
        return applyMode(open({ url, tables: [{ table, ...omitUndefined({ key: stream.key }) }], slot, publication, ...omitUndefined({ pageSize }) }), stream)
      },
    }
  },
  discover: (config, folder, context) => sql.discover!(config, folder, context),
}

/** As PostgreSQL allows it. */
function defaultSlotName(id: string): string {
  return `tidemark_${id.toLowerCase().replaceAll(/[^a-z0-9]/g, '_')}`.slice(0, 63)
}
