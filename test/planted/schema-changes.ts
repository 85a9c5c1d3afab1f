import { inFile, type PlantedBug } from './planted-bug.ts'

const SQLITE = ['test/stores/schema/sqlite.test.ts']
const POSTGRES = ['test/stores/schema/postgres.pg.test.ts']

/** Columns that change while records land. */
export const SCHEMA_CHANGE_BUGS: readonly PlantedBug[] = [
  ...inFile('src/stores/kit/tables/schema-drift.ts', SQLITE, [
    ['a conflict is reported with every page', 'if (known.ids.has(driftIdOf(item)) || ', 'if ('],
    [
      'frozen columns grow',
      "(this.#modes[database] ?? 'evolve') === 'evolve' || ",
      "(this.#modes[database] ?? 'evolve') !== 'quarantine' || ",
    ],
    [
      'a record with a new member is not quarantined',
      'encoded.needsColumns && !isFirst ? findNewMembers(table.columns, record) : []',
      '[]',
    ],
    ['the first records do not make the columns that are not declared', 'this.#first.has(database) || ', ''],
    [
      'the first records are refused for members that are not declared',
      'encoded.needsColumns && !isFirst',
      'encoded.needsColumns',
    ],
    [
      'a record that is refused lands as well',
      '!ids.has(JSON.stringify([database, key]))',
      'ids.size > 0 || key !== database',
    ],
  ]),
  ...inFile('src/stores/kit/tables/schema-change.ts', SQLITE, [
    [
      'the old column is forgotten while its values are copied',
      '  if (before !== undefined && from !== null) columns.push({ ...before, former: true })\n',
      '',
    ],
    ['a dropped member gets its column back with the next record', 'name: null, held: true }', 'name: null }'],
    [
      'the history is not copied',
      "change.phase === 'rows' ? 'history' : 'indexes'",
      "change.phase === 'rows' ? 'indexes' : 'indexes'",
    ],
    [
      'an index is dropped with its column without an error',
      'if (lost.length > 0 && !lose)',
      'if (lost.length > 1_000 && !lose)',
    ],
  ]),
  ...inFile('src/stores/kit/tables/decode-record.ts', SQLITE, [
    [
      'a value that was not copied yet is not read',
      'value === null && former !== null ? valueAt(former.at) : null',
      'null',
    ],
  ]),
  ...inFile('src/stores/kit/tables/encode-record.ts', SQLITE, [
    [
      'a member of the old column is counted twice',
      '        continue\n      }\n      if (value === undefined) {',
      '        met++\n        continue\n      }\n      if (value === undefined) {',
    ],
  ]),
  ...inFile('src/stores/sqlite/schema-change.ts', SQLITE, [
    ['an index of the user’s is not made again', 'connection.exec(sql)', "sql.startsWith('x') && connection.exec(sql)"],
    [
      'the first batch of rows is taken for the last',
      'found.length < rowsMax ? undefined',
      'found.length <= rowsMax ? undefined',
    ],
    [
      'a second change begins while one is running',
      'if (readChange(session, table) !== null) throw',
      'if (table.id < 0) throw',
    ],
  ]),
  ...inFile('src/stores/postgres/schema-change.ts', POSTGRES, [
    [
      'an object created on a column meanwhile is lost',
      'checkDependentLoss(table.columns, { moves, lose } as StoredSchemaChange, dependents.forColumn)',
      'void dependents',
      POSTGRES,
      'an object created on a column',
    ],
    ['a long reader fails the change', 'refusals: [LOCK_NOT_AVAILABLE]', 'refusals: []', POSTGRES, 'long reader'],
  ]),
  ...inFile('src/stores/postgres/dependents.ts', POSTGRES, [
    [
      'an index that was cut off is taken for a whole one',
      'if (there?.valid === true) continue',
      'if (there !== undefined) continue',
      POSTGRES,
      'whose build was interrupted',
    ],
    ['the comment of a column is lost', 'found.comment !== null', 'found.comment === null', POSTGRES, 'invariant 14'],
  ]),
  ...inFile('src/stores/postgres/connection.ts', POSTGRES, [
    [
      'a reader takes the new column for the old one',
      'fields[from + at]?.dataTypeID !== type',
      'fields[from + at]?.dataTypeID === 0',
      POSTGRES,
      'reads again',
    ],
  ]),
]
