import { inFile, type PlantedBug } from './planted-bug.ts'

const SQLITE = ['test/stores/sqlite.test.ts']
const POSTGRES = ['test/stores/postgres.pg.test.ts']
const SOFT = ['test/stores/sqlite-soft.test.ts']
const SOFT_PG = ['test/stores/postgres-soft.pg.test.ts']
const TABLES = ['test/stores/sqlite-tables.test.ts']
const WALLS = ['test/stores/postgres-walls.pg.test.ts']
const AS_OF = ['test/cli/as-of.test.ts']
const AS_OF_PG = ['test/cli/as-of.pg.test.ts']
const RUN = ['test/config/run-cycle.test.ts']

/** Rows that stay in their table when they are deleted, and how a database comes and goes with them. */
export const SOFT_DELETE_BUGS: readonly PlantedBug[] = [
  ...inFile('src/stores/kit/tables/delete-state.ts', SQLITE, [
    ['deleted rows count as live', '` and ${DELETED_AT} is null`', "''", SQLITE, 'soft delete'],
    ['rows that are still to be removed are shown', ' || purgedTo !== null\n', '\n', SQLITE, 'from soft to hard'],
    [
      'rows that were kept stay for good',
      "{ deletes: 'hard', purgedTo: '' }",
      "{ deletes: 'hard', purgedTo: null }",
      SQLITE,
      'from soft to hard',
    ],
    [
      'a setting that is gone is not noticed',
      "(state.deletes ?? 'hard') === wanted",
      "state.deletes === wanted || wanted === 'hard'",
      RUN,
      'how rows are deleted',
    ],
  ]),
  ...inFile('src/stores/sqlite/delete-mode.ts', SQLITE, [
    [
      'a column of the user’s is taken for ours',
      'column.toLowerCase() === DELETED_AT',
      "column === ''",
      TABLES,
      '_deleted_at of the user',
    ],
    [
      'the history has no such column',
      '[table.name, table.history]) session',
      '[table.name]) session',
      AS_OF,
      'soft deletes',
    ],
    [
      'the first key is passed over',
      'and key > ? order by key',
      'and key > (? || char(97)) order by key',
      SQLITE,
      'soft to hard and back',
    ],
    [
      'only the first step is taken',
      'const last = keys.length === scanMax ?',
      'const last = keys.length > scanMax ?',
      SQLITE,
      'in steps',
    ],
    [
      'rows are removed that are live',
      'where ${DELETED_AT} is not null and _key in',
      'where _key not in',
      SQLITE,
      'in steps',
    ],
  ]),
  ...inFile('src/stores/sqlite/rows.ts', SQLITE, [
    [
      'the tombstone of a row that came back stays',
      'for (const { landing } of returned) deleteTombstone',
      'for (const { landing } of returned.filter((one) => !kept.has(one))) deleteTombstone',
      SOFT,
      'O7',
    ],
    [
      'a row that came back is still deleted',
      'set _deleted_at = null, _sequence = ?1',
      'set _sequence = ?1',
      SQLITE,
      'returns',
    ],
    [
      'a row that came back has the version from before',
      "`, ${name} = ?`).join('')} where _key = ?`,\n  )\n  for (const write of writes)",
      "`, ${name} = coalesce(?, ${name})`).join('')} where _key = ?`,\n  )\n  for (const write of writes)",
      SQLITE,
      'returns changed',
    ],
  ]),
  ...inFile('src/stores/sqlite/sweep.ts', SQLITE, [
    [
      'a swept row is removed though it is to be kept',
      "if (table.deletes !== 'soft') connection",
      'if (table.deletes !== null || table.id > 0) connection',
      SQLITE,
      'by a sweep are kept',
    ],
    [
      'deleted rows count for the share that is swept',
      'existed from (select 1 from ${live}',
      'existed from (select 1 from ${live.replace(/^.*?from (.*?) where.*$/, "$1")}',
      SQLITE,
      'invariant 11: deleted',
    ],
  ]),
  ...inFile('src/stores/sqlite/as-of.ts', AS_OF, [
    [
      'a past without deleted rows shows them',
      'from ${liveRows(`main.${current}`, state)}',
      'from main.${current}',
      AS_OF,
      'soft deletes',
    ],
  ]),
  ...inFile('src/stores/postgres/delete-mode.ts', POSTGRES, [
    [
      'a column of the user’s is taken for ours',
      'if (foreign !== undefined) {',
      'if (foreign === null) {',
      WALLS,
      '_deleted_at of the user',
    ],
    [
      'a reader who holds the table makes a delete hard',
      'if (!lockedDatabases.has(database)) return\n',
      'if (lockedDatabases.has(database)) return\n  return\n',
      WALLS,
      'first soft delete',
    ],
    [
      'only the first step is taken',
      'keys.length === scanMax ? (keys.at(-1)',
      'keys.length > scanMax ? (keys.at(-1)',
      POSTGRES,
      'in steps',
    ],
    [
      'a setting is written and not followed',
      'tables.set(database, { ...written, ...state,',
      'tables.set(database, { ...written,',
      POSTGRES,
      'from hard to soft',
    ],
  ]),
  ...inFile('src/stores/postgres/rows.ts', POSTGRES, [
    ['a row that came back is still deleted', ', ${DELETED_AT} = null`', '`', POSTGRES, 'returns'],
    [
      'a row that came back belongs to its old owner',
      ', _owner = ${owner}, ${DELETED_AT}',
      ', ${DELETED_AT}',
      POSTGRES,
      'a restored soft-deleted row belongs',
    ],
    [
      'a row that came back was only updated',
      'extraSets = `, _created_sequence = w.c0,',
      'extraSets = `, _created_sequence = t._created_sequence,',
      POSTGRES,
      'returns',
    ],
    [
      'a row that is kept has its old sequence',
      '_synced_at = w.at, _sequence = w.sequence, _writer',
      '_synced_at = w.at, _writer',
      POSTGRES,
      'a soft delete keeps',
    ],
  ]),
  ...inFile('src/stores/postgres/sweep.ts', POSTGRES, [
    [
      'a swept row is removed though it is to be kept',
      "table.deletes === 'soft'\n",
      'table.id < 0\n',
      POSTGRES,
      'by a sweep are kept',
    ],
    [
      'the sweep of a table that a reader holds is hard',
      `  checkDeletable(table, facts.lockedDatabases)
`,
      '',
      WALLS,
      'first soft delete',
    ],
    [
      'deleted rows count for the share that is swept',
      'select count(*) from (select from ${table.live} l where _owner',
      'select count(*) from (select from ${table.live.replace(/^.*?from (.*?) where.*$/, "$1")} l where _owner',
      POSTGRES,
      'invariant 11: deleted',
    ],
  ]),
  ...inFile('src/stores/postgres/commit.ts', POSTGRES, [
    [
      'a table with other columns than remembered fails the commit',
      '[UNDEFINED_TABLE, UNDEFINED_COLUMN]',
      '[UNDEFINED_TABLE]',
      SOFT_PG,
      'Z14',
    ],
    [
      'a database that comes with its first commit deletes hard',
      "commit.deletes?.[database] === 'soft' ?",
      'commit.deletes === null ?',
      POSTGRES,
      'first commit follows',
    ],
    [
      'a setting that changed is looked up in the table of before',
      'now?.live !== before?.live ||',
      '',
      POSTGRES,
      'returns|from hard to soft',
    ],
  ]),
  ...inFile('src/stores/postgres/as-of.ts', AS_OF_PG, [
    [
      'a past without deleted rows shows them',
      'from ${liveRows(qualified(name), state)} l',
      'from ${qualified(name)} l',
      AS_OF_PG,
      'soft deletes',
    ],
  ]),
  ...inFile('src/engine/sync-plan.ts', RUN, [
    [
      'a store that cannot keep rows is not asked',
      'store.supportsSoftDeletes === true) return',
      'store !== null) return',
      RUN,
      'does not keep',
    ],
    [
      'a setting is not committed after it was removed',
      "databases.map(({ name, deletes = 'hard' }) => [name, deletes])",
      'databases.flatMap(({ name, deletes }) => (deletes === undefined ? [] : [[name, deletes]]))',
      RUN,
      'how rows are deleted',
    ],
  ]),
  ...inFile(
    'src/mcp/query-tool.ts',
    ['test/docs/tables.test.ts'],
    [
      [
        'agents are given deleted rows',
        'const relation = hasDeleted ?',
        'const relation = hasDeleted && named === null ?',
        ['test/docs/tables.test.ts'],
        'soft deletes',
      ],
    ],
  ),
]
