import { objectSchema, SECRET_SCHEMA, TEXT_SCHEMA } from '../../values/config-schema.ts'
import { defineDestination } from '../kit/define-destination.ts'

/** A MariaDB or MySQL server. */
export default defineDestination({
  name: 'mariadb',
  title: 'MariaDB and MySQL',
  packages: ['mysql2', 'node:crypto', 'node:stream', 'node:timers/promises'],
  install: { mysql2: '^3' },
  config: objectSchema({ url: SECRET_SCHEMA, database: TEXT_SCHEMA }, ['url']),
  types: {
    bigint: 'bigint',
    boolean: 'boolean',
    bytes: 'longblob',
    date: 'date',
    datetime: 'datetime(6)',
    decimal: 'decimal(65,30)',
    double: 'double',
    json: 'longtext',
    numeric: 'decimal(65,30)',
    text: 'longtext',
    time: 'time(6)',
    timestamp: 'datetime(6), in UTC',
    uuid: 'char(36)',
    list: 'longtext, as JSON',
  },
  limits: [
    ['A value that its column cannot hold exactly', 'in `_extra`'],
    ['A decimal of more than 35 digits before or 30 after the point', 'in `_extra`'],
    ['A decimal text with another number of decimals than the first ones of its column', 'in `_extra`'],
    ['A key of more than 766 characters', 'cut, and made distinct with a SHA-256 hash'],
    ['A name of more than 64 bytes', 'cut, and made distinct with a number'],
    ['Names that differ only in case', 'made distinct with a number'],
    ['Characters beyond U+FFFF and spaces at the end of a name', 'replaced by `_`'],
    ['More than 1,000 columns (190 if the account may not set innodb_strict_mode)', 'the rest in `_extra`'],
    ['A row of more than 6,500 bytes without its long texts', 'the rest in `_extra`'],
  ],
  async create(config) {
    const { mariadb } = await import('./destination.ts')
    return mariadb(config)
  },
})
