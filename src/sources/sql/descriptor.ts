import { isAbsolute, join } from 'node:path'
import { COUNT_SCHEMA, objectSchema, TEXT_SCHEMA } from '../../values/config-schema.ts'
import { DATABASE_URL_SCHEMA } from '../kit/database-url-schema.ts'
import { defineSource } from '../kit/define-source.ts'
import { omitUndefined } from '../kit/omit-undefined.ts'
import { SINCE_SCHEMA } from '../kit/since.ts'

/** Tables and views of SQL databases. */
export default defineSource({
  name: 'sql',
  title: 'SQL databases',
  times: { since: true, range: true },
  packages: ['node:fs', 'node:path', 'pg', 'mysql2', '@photostructure/sqlite'],
  config: objectSchema({ url: DATABASE_URL_SCHEMA, since: SINCE_SCHEMA }, ['url']),
  streams: {
    options: objectSchema({
      table: TEXT_SCHEMA,
      deleted: TEXT_SCHEMA,
      page_size: COUNT_SCHEMA,
      since: TEXT_SCHEMA,
      partitions: COUNT_SCHEMA,
      concurrency: COUNT_SCHEMA,
    }),
  },
  async open(config, { folder }) {
    const { sql, discover } = await import('./source.ts')
    const url = resolveUrl(config.url, folder)
    const { since } = config
    return { url, since, source: sql({ url, ...omitUndefined({ since }) }), discover }
  },
  stream({ source, since: sourceSince }, { id, key, cursor, mode, select, safety_window: safetyWindow, options = {} }) {
    const { table = id, deleted, page_size: pageSize, since, partitions, concurrency } = options
    const shared = {
      ...omitUndefined({ key, deleted, pageSize, since, partitions, concurrency }),
      ...(select !== undefined && { columns: select }),
    }
    if (cursor === undefined || mode === 'full_refresh')
      return source.listing(table, {
        ...shared,
        ...((since ?? sourceSince) !== undefined && omitUndefined({ cursor })),
      })
    return source.table(table, { ...shared, cursor, ...omitUndefined({ safetyWindow }) })
  },
  discover: ({ url, discover }, context) => discover({ url }, context),
  template: {
    rank: 130,
    label: 'Tables of PostgreSQL, MySQL, MariaDB or SQLite',
    settings: { SOURCE_URL: 'postgres://…, mysql://…, mariadb://… or sqlite:path' },
    database: 'customers',
    simulated: 'shop.db, a small SQLite file created on the first run,',
  },
})

function resolveUrl(url: string, folder: string): string {
  const file = /^sqlite:(.+)$/.exec(url)?.[1]
  return file === undefined || isAbsolute(file) ? url : `sqlite:${join(folder, file)}`
}
