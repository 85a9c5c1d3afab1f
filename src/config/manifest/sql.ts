import { isAbsolute, join } from 'node:path'
import { COUNT, given, object, TEXT, type Connector } from './connector.ts'

/** Tables and views. */
export const sql: Connector = {
  config: object({
    url: {
      type: 'string',
      pattern: '^(?:\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}|sqlite:.+|(?:postgres|postgresql|mysql|mariadb)://(?:[^:@/]+@)?[^@]*)$',
      description: 'postgres://…, mysql://…, mariadb://… or sqlite:file. With a password in it, it is a secret: write ${NAME} here, and set NAME in the environment or in .env',
    },
  }, ['url']),
  stream: { properties: { options: object({ table: TEXT, deleted: TEXT, page_size: COUNT }) } },
  async open(config, folder) {
    const { sql: open } = await import('../../sources/sql/source.ts')
    const source = open({ url: urlIn(config.url, folder) })
    return {
      stream({ id, key, cursor, mode, select, safety_window: safetyWindow, options = {} }) {
        const { table = id, deleted, page_size: pageSize } = options as { table?: string; deleted?: string; page_size?: number }
        const shared = { ...given({ key, deleted, pageSize }), ...(select !== undefined && { columns: select }) }
        if (cursor === undefined || mode === 'full_refresh') return source.listing(table, shared)
        return source.table(table, { ...shared, cursor, ...given({ safetyWindow }) })
      },
    }
  },
  async discover(config, folder, context) {
    const { discover } = await import('../../sources/sql/source.ts')
    return discover({ url: urlIn(config.url, folder) }, context)
  },
}

function urlIn(url: string, folder: string): string {
  const file = /^sqlite:(.+)$/.exec(url)?.[1]
  return file === undefined || isAbsolute(file) ? url : `sqlite:${join(folder, file)}`
}
