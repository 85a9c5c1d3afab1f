import { inFile, type PlantedBug } from './planted-bug.ts'

const SUITE = ['test/destinations/duckdb.test.ts']
const FILES = ['test/destinations/duckdb-file.test.ts']
const TYPES = ['test/destinations/duckdb-types.test.ts']

export const DUCKDB_BUGS: readonly PlantedBug[] = [
  ...inFile('src/destinations/duckdb/create-file.ts', FILES, [
    [
      'a file of another format is opened',
      "if (header.toString('latin1', MAGIC_AT) === MAGIC) return true",
      'return true',
      FILES,
      'is refused and stays as it is',
    ],
  ]),
  ...inFile('src/destinations/duckdb/database-file.ts', FILES, [
    ['transactions of a process run at once', 'this.#last.then(body, body)', 'body()', FILES, 'one owner in a process'],
    ['the first session that ends closes the file', '--this.#sessions > 0', '--this.#sessions < 0', FILES, 'one owner'],
    [
      'the file stays open after a run',
      'if (this.#release()) (await this.#instance).closeSync()',
      'this.#release()',
      FILES,
      'can be opened by another process',
    ],
  ]),
  ...inFile('src/destinations/duckdb/errors.ts', FILES, [
    ['a full disk is only unavailable', 'FULL_TEXT.test(message)', 'false', FILES, 'on a full disk'],
    [
      "a user's constraint is a defect",
      "Constraint: 'DESTINATION_FOREIGN'",
      "Other: 'DESTINATION_FOREIGN'",
      FILES,
      'index',
    ],
  ]),
  ...inFile('src/destinations/duckdb/client.ts', FILES, [
    ['an error of the Appender is hidden by the next one', 'appender.clear()', '', FILES, 'may have an index'],
    [
      'an error leaves the transaction open',
      "await this.#connection.run('rollback').catch(() => {})",
      '',
      FILES,
      'used again',
    ],
  ]),
  ...inFile('src/destinations/duckdb/tables.ts', TYPES, [
    [
      'a table with rows is created again',
      'added.length > REBUILD_MIN && (await this.#isEmpty(target))',
      'added.length > REBUILD_MIN',
      TYPES,
      'many new fields',
    ],
    [
      "a user's columns are overwritten",
      'existing.every((column, at) => column === names[at])',
      'true',
      FILES,
      'columns of its own',
    ],
    [
      'the old version of a row stays',
      "await this.deleteRows(table.name, '_key', keys)",
      '',
      SUITE,
      'follows every change',
    ],
    [
      'a view of the user is replaced',
      'union all select database_name, schema_name, view_name from duckdb_views() where not internal',
      '',
      FILES,
      'also a view',
    ],
    ['names in capitals are other names', 'lower(name) = lower(?)', 'name = ?', FILES, 'in capitals'],
    ['versions of a history do not end', 'and t._is_current`', 'and false`', SUITE, 'history: every version'],
  ]),
  ...inFile('src/destinations/duckdb/decimals.ts', TYPES, [
    [
      'every spelling of a decimal is exact',
      'isExact: fraction.length <= scale && isSpelled',
      'isExact: fraction.length <= scale',
    ],
    [
      'more decimals than the column has are exact',
      'isExact: fraction.length <= scale && isSpelled',
      'isExact: isSpelled',
    ],
    ['decimals are cut instead of rounded', 'fraction.charCodeAt(scale) >= FIVE ? 1n : 0n', '0n'],
    ['large values get no room', 'Math.max(0, WIDTH - digits)', 'SCALE'],
    ['a column without values decides its format', "texts.length === 0 ? '?'", "texts.length === 0 ? '*'"],
  ]),
  ...inFile('src/destinations/duckdb/duckdb-values.ts', TYPES, [
    ['microseconds are dropped', ' + BigInt(canonical.slice(23, 26))', ''],
    ['the last time is repeated', 'if (value !== last)', 'if (last === null)'],
  ]),
]
