import { resolve } from 'node:path'
import { objectSchema, TEXT_SCHEMA } from '../../values/config-schema.ts'
import { defineDestination } from '../kit/define-destination.ts'

/** A DuckDB file. */
export default defineDestination({
  name: 'duckdb',
  title: 'DuckDB',
  packages: ['@duckdb/node-api', 'node:crypto', 'node:fs', 'node:path'],
  // Its versions are prereleases in the sense of semver (1.5.6-r.1), which no other range contains.
  install: { '@duckdb/node-api': '*' },
  config: objectSchema({ file: TEXT_SCHEMA, schema: TEXT_SCHEMA }, ['file']),
  types: {
    bigint: 'bigint',
    boolean: 'boolean',
    bytes: 'blob',
    date: 'date',
    datetime: 'timestamp',
    decimal: 'decimal(38, 18)',
    double: 'double',
    json: 'json',
    numeric: 'decimal(38, 18)',
    text: 'varchar',
    time: 'time',
    timestamp: 'timestamptz',
    uuid: 'uuid',
    list: 'a list of the type',
  },
  limits: [
    ['A value that its column cannot hold exactly', 'in `_extra`'],
    [
      'First values with more than 20 digits before the point',
      'the column has fewer decimals: `decimal(38, 10)` for 28',
    ],
    ['More decimals than the column has', 'rounded in the column, all digits in `_extra`'],
    ['More digits before the point than the column has', 'null in the column, all digits in `_extra`'],
    ['Names that differ only in case', 'the second one gets a number: `name_2`'],
    ['A name of more than 128 bytes', 'cut, and made distinct with a number'],
    ['More than 2,000 columns', 'the rest in `_extra`'],
  ],
  async create(config, { folder }) {
    const { duckdb } = await import('./destination.ts')
    return duckdb({ ...config, file: resolve(folder, config.file) })
  },
})
