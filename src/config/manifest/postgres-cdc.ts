import { COUNT, given, inMode, KNOWN, object, TEXT, type Connector } from './connector.ts'
import { sql } from './sql.ts'

/** The log of PostgreSQL: every stream has a slot and a publication of its own, because each has a place of its own. */
export const postgresCdc: Connector = {
  isFollowed: true,
  config: object({ url: (sql.config['properties'] as { url: object }).url as never }, ['url']),
  stream: { properties: { options: object({ table: TEXT, slot: TEXT, publication: TEXT, page_size: COUNT }), cursor: KNOWN, select: KNOWN, safety_window: { not: {}, description: 'of a connector that follows a cursor: a log keeps its order, and goes on where it stood' } } },
  async open({ url }) {
    const { postgresCdc: open } = await import('../../sources/postgres-cdc/source.ts')
    return {
      stream(stream) {
        const { table = stream.id, slot = slotOf(stream.id), publication = slot, page_size: pageSize } = (stream.options ?? {}) as { table?: string; slot?: string; publication?: string; page_size?: number }
        return inMode(open({ url, tables: [{ table, ...given({ key: stream.key }) }], slot, publication, ...given({ pageSize }) }), stream)
      },
    }
  },
  discover: (config, folder, context) => sql.discover!(config, folder, context),
}

/** As PostgreSQL allows it. */
function slotOf(id: string): string {
  return `tidemark_${id.toLowerCase().replaceAll(/[^a-z0-9]/g, '_')}`.slice(0, 63)
}
