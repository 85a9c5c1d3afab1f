import { objectSchema, SECRET_SCHEMA, TEXT_SCHEMA } from '../../values/config-schema.ts'
import { defineDestination } from '../kit/define-destination.ts'

/** Another PostgreSQL server. */
export default defineDestination({
  name: 'postgres',
  title: 'PostgreSQL',
  packages: ['pg'],
  config: objectSchema({ url: SECRET_SCHEMA, schema: TEXT_SCHEMA }, ['url']),
  types: {
    bigint: 'bigint',
    boolean: 'boolean',
    bytes: 'bytea',
    date: 'date',
    datetime: 'timestamp',
    decimal: 'numeric',
    double: 'double precision',
    json: 'jsonb',
    numeric: 'numeric',
    text: 'text',
    time: 'time',
    timestamp: 'timestamptz',
    uuid: 'uuid',
    list: 'an array of the type',
  },
  limits: [
    ['A value that its column cannot hold exactly', 'in `_extra`'],
    ['A name of more than 63 bytes', 'cut, and made distinct with a hash'],
    ['Names that differ only in case, reserved words', 'quoted and kept as they are'],
    ['More than 1,000 columns', 'the rest in `_extra`'],
  ],
  async create(config) {
    const { postgres } = await import('./destination.ts')
    return postgres(config)
  },
})
