import { inFile, type PlantedBug } from './planted-bug.ts'

const SEARCH = ['test/stores/row-search.test.ts']
const VIEWS = ['test/console/explorer-api.test.ts']
const CONFINED_POSTGRES = ['test/stores/confined-select.pg.test.ts']

export const EXPLORER_BUGS: readonly PlantedBug[] = [
  ...inFile('src/stores/kit/search/find-rows.ts', SEARCH, [
    ['explorer: a page repeats the last row of the one before', "descending ? '<' : '>'", "descending ? '<=' : '>='"],
    [
      'explorer: a search that stopped claims that nothing is left',
      'search.search !== undefined && looked === scanMax',
      'false',
    ],
    ['explorer: rows without a value are lost after a full page', 'next: START_OF_LAST_PART', 'next: null'],
  ]),
  ...inFile('src/stores/kit/search/search-dialect.ts', SEARCH, [
    ['explorer: a wildcard in a text matches anything', ".replace(/[!%_]/g, '!$&')", ''],
  ]),
  ...inFile('src/stores/kit/search/search-rows.ts', SEARCH, [
    ['explorer: rows beyond the bytes of a page are lost', 'isCut && last !== undefined ? last : next', 'next'],
  ]),
  ...inFile('src/stores/sqlite/row-search.ts', SEARCH, [
    [
      'explorer: a value of a user enters the SQL',
      '`julianday(${bind(text)})` : bind(text)',
      "`julianday(${bind(text)})` : `'${text}'`",
    ],
    ['explorer: a search on SQLite has no time limit', 'deadline: DEADLINE_CONDITION', 'deadline: null'],
    ['explorer: the start of the history is not checked', 'checkHistory(session, table, asOf)\n', '\n'],
  ]),
  ...inFile('src/stores/sqlite/confine.ts', VIEWS, [
    [
      'explorer: confined SQL counts the rows of any table',
      "column === '' && !this.#relations.has(name) && ",
      "column === '' || ",
    ],
  ]),
  ...inFile('src/server/console/explorer-routes.ts', VIEWS, [
    [
      'explorer: SQL reads databases that the key may not read',
      'return names.filter((name) =>',
      'return names.filter((name) => name !== "" ||',
    ],
    ['explorer: any key reads the views', "scope: ':database:read'", "scope: 'sync:read'"],
  ]),
  ...inFile('src/server/console/explorer-requests.ts', VIEWS, [
    ['explorer: a time in the future is accepted', 'if (at > now)', 'if (at > now + 1e18)'],
  ]),
  ...inFile('src/stores/postgres/select.ts', CONFINED_POSTGRES, [
    ['explorer: confined SQL calls any function', 'if (only !== undefined) checkFunctions(statement)', ''],
    [
      'explorer: confined SQL reads any relation',
      'if (only !== undefined) await checkRelations(read, rewritten, only)',
      '',
    ],
    ['explorer: a second statement runs', "queryMode: 'extended' } as pg.QueryConfig", '} as pg.QueryConfig'],
  ]),
]
