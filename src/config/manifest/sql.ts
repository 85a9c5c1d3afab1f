import { isAbsolute, join } from 'node:path'
import { COUNT_SCHEMA, omitUndefined, objectSchema, TEXT_SCHEMA, type Connector } from './connector.ts'

/** Tables and views of SQL databases. */
export const sql: Connector = {
  config: objectSchema(
    {
      url: {
        type: 'string',
        pattern:
          '^(?:\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}|sqlite:.+|(?:postgres|postgresql|mysql|mariadb)://(?:[^:@/]+@)?[^@]*)$',
        description:
          'postgres://…, mysql://…, mariadb://… or sqlite:file. A URL with a password is a secret: write ${NAME} here, and set NAME in the environment or in .env',
      },
    },
    ['url'],
  ),
  stream: {
    properties: { options: objectSchema({ table: TEXT_SCHEMA, deleted: TEXT_SCHEMA, page_size: COUNT_SCHEMA }) },
  },
  async open(config, folder) {
    const { sql: open } = await import('../../sources/sql/source.ts')
    const source = open({ url: resolveUrl(config.url, folder) })
    return {
      stream({ id, key, cursor, mode, select, safety_window: safetyWindow, options = {} }) {
        const {
          table = id,
          deleted,
          page_size: pageSize,
        } = options as { table?: string; deleted?: string; page_size?: number }
        const shared = {
          ...omitUndefined({ key, deleted, pageSize }),
          ...(select !== undefined && { columns: select }),
        }
        if (cursor === undefined || mode === 'full_refresh') return source.listing(table, shared)
        return source.table(table, { ...shared, cursor, ...omitUndefined({ safetyWindow }) })
      },
    }
  },
  async discover(config, folder, context) {
    const { discover } = await import('../../sources/sql/source.ts')
    return discover({ url: resolveUrl(config.url, folder) }, context)
  },
}

function resolveUrl(url: string, folder: string): string {
  const file = /^sqlite:(.+)$/.exec(url)?.[1]
  return file === undefined || isAbsolute(file) ? url : `sqlite:${join(folder, file)}`
}
