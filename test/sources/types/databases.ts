import { sql } from '../../../src/sources/sql/source.ts'
import type { ColumnType, JsonObject } from '../../../src/contract/index.ts'
import { CdcFixture } from '../postgres-cdc/cdc-fixture.ts'
import { SOURCES } from '../sql/servers.ts'
import { DATABASE, type TypeCase } from './type-case.ts'

/** A column: its type in the source and in the copy, and values as written in the source and as landed. */
type Samples = Readonly<
  Record<
    string,
    readonly [
      declared: string,
      type: ColumnType,
      values: ReadonlyArray<readonly [literal: string, value: JsonObject[string]]>,
    ]
  >
>

const NULL = ['null', null] as const

const POSTGRES: Samples = {
  id: [
    'bigint',
    'bigint',
    [
      ['1', 1],
      ['9007199254740993', 9_007_199_254_740_993n],
    ],
  ],
  shop: [
    'uuid',
    'uuid',
    [
      ["'7d444840-9dc0-11d1-b245-5ffdce74fad2'", '7d444840-9dc0-11d1-b245-5ffdce74fad2'],
      ["'00000000-0000-0000-0000-000000000000'", '00000000-0000-0000-0000-000000000000'],
    ],
  ],
  yes: [
    'boolean',
    'boolean',
    [
      ['true', true],
      ['false', false],
    ],
  ],
  file: [
    'bytea',
    'bytes',
    [
      ["'\\x00ff'", 'AP8='],
      ["''", ''],
    ],
  ],
  day: [
    'date',
    'date',
    [
      ["'2026-01-31'", '2026-01-31'],
      ["'0001-01-01'", '0001-01-01'],
    ],
  ],
  single: [
    'real',
    'double',
    [
      ['0.1', 0.1],
      ['-2', -2],
    ],
  ],
  ratio: [
    'double precision',
    'double',
    [
      ['1e-7', 1e-7],
      ['1e300', 1e300],
    ],
  ],
  small: ['smallint', 'bigint', [['-32768', -32_768], NULL]],
  whole: ['integer', 'bigint', [['2147483647', 2_147_483_647], NULL]],
  doc: [
    'jsonb',
    'json',
    [
      [`'{"a": [1, null]}'`, { a: [1, null] }],
      [`'"text"'`, 'text'],
    ],
  ],
  text_doc: ['json', 'json', [["'[1, 2.5]'", [1, 2.5]], NULL]],
  price: [
    'numeric(20, 2)',
    'decimal',
    [
      ['1.50', '1.50'],
      ['-12345678901234567.00', '-12345678901234567.00'],
    ],
  ],
  exact: ['numeric', 'decimal', [['0.00000000010', '0.00000000010'], NULL]],
  object: ['oid', 'bigint', [['4294967295', 4_294_967_295], NULL]],
  clock: [
    'time',
    'time',
    [
      ["'12:00:00'", '12:00:00'],
      ["'23:59:59.5'", '23:59:59.5'],
    ],
  ],
  local: [
    'timestamp',
    'datetime',
    [
      ["'2026-01-31 12:00:00.5'", '2026-01-31T12:00:00.5'],
      ["'1999-12-31 23:59:59'", '1999-12-31T23:59:59'],
    ],
  ],
  at: [
    'timestamptz',
    'timestamp',
    [
      ["'2026-01-31 12:00:00.000001+00'", '2026-01-31T12:00:00.000001Z'],
      ["'2026-01-31 12:00:00+02'", '2026-01-31T10:00:00Z'],
    ],
  ],
  name: [
    'varchar(20)',
    'text',
    [
      ["'2026-01-31'", '2026-01-31'],
      ["''", ''],
    ],
  ],
  code: ['char(3)', 'text', [["'ab'", 'ab '], NULL]],
  span: ['interval', 'text', [["'1 day 02:00:00'", 'P1DT2H'], NULL]],
  address: ['inet', 'text', [["'10.0.0.1'", '10.0.0.1'], NULL]],
  mood: ['mood', 'text', [["'good'", 'good'], NULL]],
  amount: ['amount', 'decimal', [['2.50', '2.50'], NULL]],
  tags: [
    'text[]',
    'text[]',
    [
      ["array['a', null, 'b,c']", ['a', null, 'b,c']],
      ["'{}'", []],
    ],
  ],
  ids: ['bigint[]', 'bigint[]', [['array[1, 9223372036854775807]', [1, 9_223_372_036_854_775_807n]], NULL]],
  prices: ['numeric[]', 'decimal[]', [['array[1.50, 2]', ['1.50', '2']], NULL]],
  flags: ['boolean[]', 'boolean[]', [['array[true, null]', [true, null]], NULL]],
  times: [
    'timestamptz[]',
    'timestamp[]',
    [["array['2026-01-31 12:00:00+00'::timestamptz]", ['2026-01-31T12:00:00Z']], NULL],
  ],
  days: ['date[]', 'date[]', [["array['2026-01-31'::date]", ['2026-01-31']], NULL]],
  uuids: [
    'uuid[]',
    'uuid[]',
    [["array['7d444840-9dc0-11d1-b245-5ffdce74fad2'::uuid]", ['7d444840-9dc0-11d1-b245-5ffdce74fad2']], NULL],
  ],
  names: ['varchar(5)[]', 'text[]', [["array['x']::varchar[]", ['x']], NULL]],
  numbers: ['integer[]', 'bigint[]', [['array[1, null]', [1, null]], NULL]],
  ratios: ['double precision[]', 'double[]', [['array[0.5]', [0.5]], NULL]],
  clocks: ['time[]', 'time[]', [["array['12:00:00'::time]", ['12:00:00']], NULL]],
  locals: ['timestamp[]', 'datetime[]', [["array['2026-01-31 12:00:00'::timestamp]", ['2026-01-31T12:00:00']], NULL]],
  files: ['bytea[]', 'bytes[]', [["array['\\x00ff'::bytea]", ['AP8=']], NULL]],
  docs: ['jsonb[]', 'json', [[`array['{"a":1}'::jsonb]`, [{ a: 1 }]], NULL]],
}

const MARIADB: Samples = {
  id: [
    'bigint',
    'bigint',
    [
      ['1', 1],
      ['9007199254740993', 9_007_199_254_740_993n],
    ],
  ],
  shop: [
    'varchar(20)',
    'text',
    [
      ["'a'", 'a'],
      ["'b'", 'b'],
    ],
  ],
  tiny: ['tinyint', 'bigint', [['-128', -128], NULL]],
  small: ['smallint', 'bigint', [['7', 7], NULL]],
  medium: ['mediumint', 'bigint', [['-8388608', -8_388_608], NULL]],
  whole: ['int unsigned', 'bigint', [['4294967295', 4_294_967_295], NULL]],
  big: [
    'bigint unsigned',
    'numeric',
    [
      ['18446744073709551615', 18_446_744_073_709_551_615n],
      ['0', 0],
    ],
  ],
  bits: ['bit(64)', 'numeric', [["b'101'", 5], NULL]],
  price: [
    'decimal(20, 2)',
    'decimal',
    [
      ['1.50', '1.50'],
      ['-12345678901234567.00', '-12345678901234567.00'],
    ],
  ],
  ratio: [
    'double',
    'double',
    [
      ['1e-7', 1e-7],
      ['2', 2],
    ],
  ],
  single: ['float', 'double', [['0.5', 0.5], NULL]],
  day: ['date', 'date', [["'2026-01-31'", '2026-01-31'], NULL]],
  local: ['datetime', 'datetime', [["'2026-01-31 12:00:00'", '2026-01-31T12:00:00'], NULL]],
  fine: ['datetime(6)', 'datetime', [["'2026-01-31 12:00:00.500000'", '2026-01-31T12:00:00.500000'], NULL]],
  at: ['timestamp(3) null', 'timestamp', [["'2026-01-31 12:00:00.120'", '2026-01-31T12:00:00.120Z'], NULL]],
  span: ['time', 'text', [["'800:00:00'", '800:00:00'], NULL]],
  built: ['year', 'bigint', [['2026', 2026], NULL]],
  fixed: ['char(3)', 'text', [["'ab'", 'ab'], NULL]],
  note: [
    'text',
    'text',
    [
      ["'2026-01-31'", '2026-01-31'],
      ["''", ''],
    ],
  ],
  tiny_note: ['tinytext', 'text', [["'x'", 'x'], NULL]],
  medium_note: ['mediumtext', 'text', [["'x'", 'x'], NULL]],
  long_note: ['longtext', 'text', [["'x'", 'x'], NULL]],
  state: ["enum('on', 'off')", 'text', [["'on'", 'on'], NULL]],
  marks: ["set('a', 'b')", 'text', [["'a,b'", 'a,b'], NULL]],
  bytes: [
    'varbinary(20)',
    'bytes',
    [
      ["x'00ff'", 'AP8='],
      ["''", ''],
    ],
  ],
  fixed_bytes: ['binary(2)', 'bytes', [["x'00ff'", 'AP8='], NULL]],
  tiny_file: ['tinyblob', 'bytes', [["x'01'", 'AQ=='], NULL]],
  plain_file: ['blob', 'bytes', [["x'01'", 'AQ=='], NULL]],
  medium_file: ['mediumblob', 'bytes', [["x'01'", 'AQ=='], NULL]],
  file: ['longblob', 'bytes', [["x'01'", 'AQ=='], NULL]],
  doc: ['json', 'json', [[`'{"a": [1, null]}'`, { a: [1, null] }], NULL]],
  uid: ['uuid', 'uuid', [["'7d444840-9dc0-11d1-b245-5ffdce74fad2'", '7d444840-9dc0-11d1-b245-5ffdce74fad2'], NULL]],
  host_4: ['inet4', 'text', [["'10.0.0.1'", '10.0.0.1'], NULL]],
  host: ['inet6', 'text', [["'::1'", '::1'], NULL]],
}

const KEY = ['shop', 'id']

/** Two rows with every value; the change copies the values of the first row to the second. */
function tableOf(samples: Samples): {
  readonly create: string
  readonly change: string
  truth(isChanged: boolean): Record<string, JsonObject>
} {
  const names = Object.keys(samples)
  const rows = [0, 1].map((n) => `(${names.map((name) => samples[name]![2][n]![0]).join(', ')})`)
  const recordOf = (n: number, from: number): [string, JsonObject] => {
    const record = Object.fromEntries(names.map((name) => [name, samples[name]![2][KEY.includes(name) ? n : from]![1]]))
    return [JSON.stringify(KEY.map((name) => String(record[name]))), record]
  }
  const others = names.filter((name) => !KEY.includes(name))
  return {
    create: `create table things (${names.map((name) => `${name} ${samples[name]![0]}`).join(', ')}, primary key (${KEY.join(', ')}));\n insert into things values ${rows.join(', ')}`,
    change: `update things set ${others.map((name) => `${name} = ${samples[name]![2][0]![0]}`).join(', ')} where id <> 1`,
    truth: (isChanged) => Object.fromEntries([recordOf(0, 0), recordOf(1, isChanged ? 0 : 1)]),
  }
}

function typesOf(samples: Samples): Record<string, ColumnType> {
  return Object.fromEntries(Object.entries(samples).map(([name, [, type]]) => [name, type]))
}

export const DATABASE_CASES: readonly TypeCase[] = [
  {
    name: 'postgres-cdc',
    types: typesOf(POSTGRES),
    key: KEY,
    async open() {
      const shop = await CdcFixture.open()
      const { create, change, truth } = tableOf(POSTGRES)
      await shop.exec(`create type mood as enum ('good', 'bad'); create domain amount as numeric(10, 2); ${create}`)
      let isChanged = false
      return {
        declare(worker) {
          worker.track('things', {
            database: worker.database(DATABASE),
            source: shop.source({ tables: [{ table: 'public.things' }] }),
          })
          return { first: 'things-backfill', second: 'things' }
        },
        truth: () => truth(isChanged),
        async change() {
          await shop.exec(change)
          isChanged = true
        },
        close: () => shop.close(),
      }
    },
  },
  {
    name: 'MariaDB through sql',
    types: typesOf(MARIADB),
    key: KEY,
    async open() {
      const source = await SOURCES.find(({ name }) => name === 'mariadb')!.open('')
      const { create, change, truth } = tableOf(MARIADB)
      await source.exec(create)
      let isChanged = false
      return {
        declare(worker) {
          worker.sync('things', { database: worker.database(DATABASE), ...sql({ url: source.url }).listing('things') })
          return { first: 'things', second: 'things' }
        },
        truth: () => truth(isChanged),
        async change() {
          await source.exec(change)
          isChanged = true
        },
        close: () => source.close(),
      }
    },
  },
]
