import { inFile, type PlantedBug } from './planted-bug.ts'

const POSTGRES = ['test/destinations/postgres.pg.test.ts']
const MARIADB = ['test/destinations/mariadb.test.ts']
const CRASH_OF_LOAD = 'crash between any two statements of a load'

export const SQL_DESTINATION_BUGS: readonly PlantedBug[] = [
  ...inFile('src/destinations/kit/sql-session.ts', MARIADB, [
    [
      'the token is not checked',
      "if (!isNextStep(toPosition(stored), batch, step)) return 'refused'",
      '',
      POSTGRES,
      'two appliers',
    ],
    ["a table of the user's is replaced", '!ours.has(table) &&', 'false &&', MARIADB, 'not ours'],
    [
      'new columns are not noted',
      "{ ...before, ...layout, pending: 'columns' }",
      'before',
      MARIADB,
      'no second column',
    ],
    ['a swap is not noted', "isLast ? 'swap' : null", 'null', MARIADB, CRASH_OF_LOAD],
    ['a drop is not noted', "{ ...live, pending: 'drop' }", 'live', MARIADB, 'are removed'],
    [
      'a new load is not noted',
      "{ token: step.next, mode, columns: [], children: all, pending: 'create' }",
      '{ token: step.next, mode, columns: [], children: all, pending: null }',
      MARIADB,
      CRASH_OF_LOAD,
    ],
    [
      'rows with other children are followed',
      'if (before !== null) checkChildren(name, before, children)',
      '',
      POSTGRES,
      'children',
    ],
    [
      'old child tables stay',
      '.filter((table) => !tables.includes(table))',
      '.filter(() => false)',
      POSTGRES,
      'children',
    ],
    ['notes are not settled', 'await this.#settle(database, stored)', '', MARIADB, CRASH_OF_LOAD],
  ]),
  ...inFile(
    'src/destinations/kit/child-rows.ts',
    POSTGRES,
    [['a list with other values becomes children', 'value.every(isObject)', 'value.some(isObject)']],
    'children',
  ),
  ...inFile('src/destinations/kit/sql-states.ts', MARIADB, [
    ["another tenant's table is used", 'other !== undefined', 'false', MARIADB, 'two tenants'],
  ]),
  ...inFile('src/destinations/kit/sql-batch.ts', POSTGRES, [
    [
      'old children stay',
      "if (!isLoad) await this.#tables.deleteRows(table.name, '_parent_key', changes.map(keyOf))",
      '',
      POSTGRES,
      'children',
    ],
    [
      'the rows of a load are not indexed',
      'next.after === null && (isFirst || isLoad)',
      'next.after === null && isFirst',
      POSTGRES,
      'follows every change',
    ],
    [
      "a new field takes the name of a user's column",
      '.filter((name) => !ours.has(name))',
      '.filter(() => false)',
      MARIADB,
      'column and a unique index',
    ],
  ]),
  ...inFile('src/destinations/kit/extend-columns.ts', MARIADB, [
    ['decimals have no scale', 'decimals?.isOpen(column) === true', 'false', MARIADB, 'every type'],
  ]),
  ...inFile(
    'src/destinations/postgres/tables.ts',
    POSTGRES,
    [["a user's indexes are lost", 'for (const objects of replaced) await objects.build()', '']],
    'resync keeps',
  ),
  ...inFile(
    'src/destinations/postgres/user-objects.ts',
    POSTGRES,
    [
      ['default privileges are added', '...(await buildRevokes(client, from)), ', ''],
      ['an index of a lost column stops the load', "'42703', ", ''],
    ],
    'resync keeps',
  ),
  ...inFile('src/destinations/mariadb/tables.ts', MARIADB, [
    [
      'rows that LOAD DATA skipped are not counted',
      'affectedRows === rows && warningStatus === 0',
      'affectedRows >= 0',
      MARIADB,
      'would skip',
    ],
    ['spaces at the end of a key are ignored', "'utf8mb4_nopad_bin'", "'utf8mb4_bin'", MARIADB, 'keys that differ'],
    ['the swap is not repeatable', 'if (!(await this.exists(from))) continue', '', MARIADB, CRASH_OF_LOAD],
    ['the server decides if LOAD DATA works', 'this.#server.allowsLoadData', 'true', MARIADB, 'local_infile = 0'],
  ]),
  ...inFile('src/destinations/mariadb/values.ts', MARIADB, [
    ['long keys are only cut', '}#${hash}`', '}`', MARIADB, 'keys that differ'],
    ['long decimals are rounded', 'fraction.length <= DECIMALS_MAX', 'true', MARIADB, 'every type'],
  ]),
  ...inFile('src/destinations/mariadb/row-writer.ts', MARIADB, [
    ['backslashes are not escaped', 'code === BACKSLASH ||', '', MARIADB, 'local_infile = 1'],
    ['quotes are not escaped', `/['\\\\\\0\\n\\r\\u001a]/g`, `/[\\\\\\0\\n\\r\\u001a]/g`, MARIADB, 'local_infile = 0'],
  ]),
  ...inFile('src/destinations/mariadb/codec.ts', MARIADB, [
    ['a decimal with another scale is exact', '=== format)', "!== '')", MARIADB, 'every type'],
    ['wide rows do not fit', 'rowBytesMax: 6_500', 'rowBytesMax: 60_500', MARIADB, '1,000 columns'],
  ]),
  ...inFile('src/destinations/postgres/client.ts', POSTGRES, [
    ['a full disk of PostgreSQL is only unavailable', "  '53100': 'DESTINATION_FULL',\n", '', POSTGRES, 'full disk'],
  ]),
  ...inFile('src/destinations/mariadb/client.ts', MARIADB, [
    ['a full table of MariaDB is a rejected record', "  1114: 'DESTINATION_FULL',\n", '', MARIADB, 'full disk'],
    ['a full disk of MariaDB is a rejected record', "  1021: 'DESTINATION_FULL',\n", '', MARIADB, 'full disk'],
  ]),
]
