import { inFile, type PlantedBug } from './planted-bug.ts'

const LOSSLESS = ['test/stores/tables/lossless.test.ts']
const VALUES = ['test/stores/tables/typed-values.test.ts']
const VALUES_PG = ['test/stores/tables/typed-values.pg.test.ts']
const ROWS = ['test/stores/tables/rows.test.ts']
const ROWS_PG = ['test/stores/tables/rows.pg.test.ts']
const PACKING = ['test/stores/sqlite-packing.test.ts']
const SQLITE = ['test/stores/sqlite.test.ts']
const POSTGRES = ['test/stores/postgres.pg.test.ts']
const FAULTS = ['test/stores/postgres-faults.pg.test.ts']
const WALLS = ['test/stores/postgres-walls.pg.test.ts']
const MOVED = ['test/stores/migrations/sqlite.test.ts']
const MOVED_PG = ['test/stores/migrations/postgres.pg.test.ts']

/** The tables of the copy: columns, rows, history and the directory of commits, of both stores. */
export const TABLE_BUGS: readonly PlantedBug[] = [
  ...inFile('src/stores/kit/tables/column.ts', LOSSLESS, [
    [
      'an integer just beyond 64 bits gets a column for smaller ones',
      'value < INT64 && value >= -INT64',
      'value <= INT64 && value >= -INT64',
      VALUES,
    ],
    [
      'a date that does not exist is a date',
      ' && canonicalizeInstant(`${text}T00:00:00Z`) !== null',
      '',
      VALUES_PG,
      'dates',
    ],
    ['the decimals of a timestamp are forgotten', 'count(`${decimals.length}${zone}`)', 'count(`3${zone}`)', LOSSLESS],
    [
      'fractions get a column for whole numbers',
      "only('bigint', 'double')) return 'double'",
      "only('bigint', 'double')) return 'bigint'",
      VALUES,
    ],
    [
      'a leap second is kept as a timestamp of the usual form',
      ':[0-5]\\d(?:\\.(\\d{1,6}))?(Z|\\+00:?00)$/',
      ':\\d\\d(?:\\.(\\d{1,6}))?(Z|\\+00:?00)$/',
      VALUES_PG,
      'instants in',
    ],
  ]),
  ...inFile('src/stores/kit/tables/encode-record.ts', VALUES_PG, [
    [
      'a timestamp comes back in the format of its column',
      'isTimestampOfFormat(value, format)',
      'isTimestamp(value)',
      VALUES_PG,
      'instants in',
    ],
    [
      'a nested number comes back in another notation',
      `: isExactInJsonb(value)
`,
      ': true\n',
      VALUES_PG,
      'nested',
    ],
    ['a member without a column is lost', 'defineMember((draft.extra ??= {}), name, value)', '', LOSSLESS],
    [
      'a value that does not fit its column is rounded',
      `defineMember((extra ??= {}), member, value)
          held`,
      'held',
    ],
    [
      'a member of the prototype is taken for one of the record',
      'isInherited && !Object.hasOwn(record, member)',
      'false',
      LOSSLESS,
    ],
  ]),
  ...inFile('src/stores/kit/tables/decode-record.ts', LOSSLESS, [
    ['rows from before a column have its null', 'sequence >= column.since && ', ''],
    ['an absent member is read as null', ' && extra?.absent?.includes(member) !== true', ''],
    [
      'members without a column are not read',
      'if (extra?.values !== undefined) text =',
      "if (extraText === '') text =",
    ],
    [
      'the rounded value of a column wins over the exact one',
      'if (extra?.values !== undefined && Object',
      'if (column.name === null && extra?.values !== undefined && Object',
    ],
  ]),
  ...inFile('src/stores/kit/tables/grow-columns.ts', LOSSLESS, [
    ['a column that gets its name later forgets the nulls before', 'since: before?.since ?? since', 'since'],
    ['the meaning of null changes when a column gets its name', 'none: before?.none ?? (', 'none: (', ROWS],
    [
      'a table gets more columns than it can have',
      'this.#count < columnsMax',
      'columnsMax > 0',
      SQLITE,
      'thousands of fields',
    ],
    ['two members share a column', 'this.#taken.add(name.toLowerCase())', '', SQLITE, 'XD23'],
    [
      'a column is used again for a member of another type',
      "(values.length === 0 ? 'text' : typeOfValues(values))",
      "('bigint' as const)",
      VALUES,
    ],
  ]),
  ...inFile('src/stores/kit/column-names.ts', SQLITE, [
    [
      'names that differ by case share a column',
      'taken.has(name.toLowerCase()); n++',
      'taken.has(name); n++',
      SQLITE,
      'XD23',
    ],
    ['a quote in a name ends it', ".replaceAll('\"', '\"\"')", '', SQLITE, 'XD25'],
    [
      'a name that is too long loses its number',
      'truncateToBytes(member, bytesMax - 6)',
      'truncateToBytes(member, bytesMax)',
      POSTGRES,
      'long names',
    ],
  ]),
  ...inFile('src/stores/kit/plan-landing.ts', SQLITE, [
    [
      'a creation takes the sequence of the entry before it',
      "action: 'created', sequence: ++headSequence",
      "action: 'created', sequence: headSequence++",
    ],
    [
      'an update takes no sequence of its own',
      "action: 'updated', sequence: ++headSequence",
      "action: 'updated', sequence: headSequence",
    ],
  ]),
  ...inFile('src/stores/sqlite/table.ts', VALUES, [
    ['a small fraction is rounded to zero', 'value > 0 && value <= Number.EPSILON', 'value > 0 && value < 0'],
    [
      'a column is added to the table and not to its history',
      'for (const altered of [table.name, table.history])',
      'for (const altered of [table.name])',
    ],
    [
      'the columns that were added are forgotten',
      "connection.run('update tidemark_databases set layout = ? where tenant_id = ? and database_id = ?'",
      "String('update tidemark_databases set layout = ? where tenant_id = ? and database_id = ?'",
    ],
    ['an integer beyond 53 bits is read as a double', "(type === 'bigint' ? `cast(", "(type === 'date' ? `cast("],
    ['false is read as true', "value === 0 ? 'false' : 'true'", "value === null ? 'false' : 'true'"],
    [
      'a value that becomes null is unchanged',
      'stored === null) return value === stored',
      'stored === null) return true',
      ROWS,
    ],
    [
      'a column of the user’s is taken for one of the table',
      '.filter((column) => !ours.has(column.toLowerCase()))',
      ".filter((column) => !ours.has(column.toLowerCase()) && column === '')",
      ['test/stores/sqlite-tables.test.ts'],
    ],
    [
      'a history of a database is taken for another database',
      'lower(?1), lower(?1 ||',
      'lower(?1), lower(?1 || ?1 ||',
      ['test/stores/sqlite-tables.test.ts'],
    ],
  ]),
  ...inFile('src/stores/sqlite/rows.ts', VALUES, [
    ['an update keeps no version', '  archiveVersions(session, table, upserts.map(', '  String(upserts.map('],
    ['a version ends one sequence too late', '=> [until, key]', '=> [until + 1, key]', SQLITE, 'invariant 8'],
    ['sequences with a gap are counted on', ' === rows.length - 1\n', ' >= rows.length - 1\n', ROWS],
    [
      'only the first cursor of a page decides whether there are any',
      'writes.some(({ landing }) => landing.cursor',
      '[writes[0]!].some(({ landing }) => landing.cursor',
      ROWS,
    ],
    [
      'only the first record of a page decides whether values are left over',
      'rows.some(({ encoded }) => encoded.extra',
      'rows.slice(0, 1).some(({ encoded }) => encoded.extra',
    ],
    [
      'a contest outlives the update that ended it',
      'for (const key of contested) deleteContest(session, table, key)',
      '',
      SQLITE,
      'contested again',
    ],
    [
      'an updated row keeps its old sequence time',
      'upstreamAtOf(write), syncedAt, landing.cursor',
      'upstreamAtOf(write), write.row?.upstreamAt ?? syncedAt, landing.cursor',
      SQLITE,
    ],
  ]),
  ...inFile('src/stores/kit/write-batch.ts', SQLITE, [
    [
      'only the last record of a page decides whether there are new members',
      'needsColumns = encoded.needsColumns && mayAddColumns',
      'needsColumns = encoded.needsColumns && mayAddColumns && write === writes.at(-1)',
      ['test/stores/tables/lookups.pg.test.ts'],
      'gets its column with that page',
    ],
    [
      'a contest outlives the write that ended it',
      'if (row != null && row.contestedBy !== null) contested.push',
      'if (row != null && row.contestedBy === 0) contested.push',
      POSTGRES,
      'contested again',
    ],
  ]),
  ...inFile('src/stores/kit/commits.ts', SQLITE, [
    ['the range of a commit in the directory is off by one', 'range.last = sequence', 'range.last = sequence - 1'],
    [
      'the databases of a commit share a range',
      'range?.table.database === landing.database',
      'range !== undefined',
      ROWS,
    ],
  ]),
  ...inFile('src/stores/sqlite/log.ts', SQLITE, [
    [
      'the last entry of a commit gets the facts of the next one',
      'commit.last < stored.sequence',
      'commit.last <= stored.sequence',
    ],
    ['a log with gaps ends with the commits that were read first', 'from = through\n', 'from = until\n', ROWS],
  ]),
  ...inFile('src/stores/sqlite/find-rows.ts', SQLITE, [
    [
      'rows beyond a bounded look-up count as missing',
      'if (count <= 2 * range.count && isAscii',
      'if (count > 0 && isAscii',
      ROWS,
    ],
    [
      'tombstones beyond a bounded look-up count as missing',
      'tenantId, id, range.min, range.max, 2 * range.count + 1,\n    )\n    if (rows.length <= 2 * range.count) {',
      'tenantId, id, range.min, range.max, 2 * range.count + 1,\n    )\n    if (rows.length > 0) {',
      ROWS,
    ],
    ['rows of another owner count as unchanged', 'found.ours !== found.count || ', ''],
    ['a contested page counts as unchanged', ' || readContests(session, table) !== null', '', ROWS],
  ]),
  ...inFile('src/stores/kit/key-range.ts', SQLITE, [
    [
      'keys above the surrogates are looked up in the wrong order',
      '/[\\ud800-\\uffff]/',
      '/[\\uffff]/',
      SQLITE,
      'XD21',
    ],
  ]),
  ...inFile('src/stores/sqlite/record-encoding-cache.ts', SQLITE, [
    ['values left over do not count as content', 'if (stored[0] === null) {', 'if (stored.length > 0) {', ROWS],
    ['a member that was absent is the same as null', ' && row.sequence >= table.since', '', ROWS],
  ]),
  ...inFile('src/stores/sqlite/take-bytes.ts', SQLITE, [
    ['a page has more bytes than it may', 'if (bytes >= bytesMax)', 'if (bytes >= 1e9)', ROWS],
  ]),
  ...inFile('src/stores/sqlite/packed-commit.ts', SQLITE, [
    [
      'rows of several databases land in the first',
      'oneDatabase &&= landing.database === landings[0]?.database',
      'oneDatabase &&= landings.length > 0',
      PACKING,
    ],
    [
      'times are lost on the way to the thread',
      'hasTimes ||= landing.upstreamAt !== null',
      'hasTimes ||= landings.length < 0',
      PACKING,
    ],
  ]),
  ...inFile('src/stores/sqlite/sequence-set.ts', SQLITE, [
    [
      'a row between two that were seen counts as seen',
      'sequence > last + 1',
      'sequence > last + 2',
      ROWS,
      'invariant 5',
    ],
    [
      'chunks are read in the order of their creation',
      '.toSorted(([a], [b]) => a - b)',
      '',
      ['test/stores/sequence-set.test.ts'],
    ],
  ]),
  ...inFile('src/stores/sqlite/queries.ts', SQLITE, [
    [
      'a page of rows begins with the last of the page before',
      'where _key > ? order by _key',
      'where _key >= ? order by _key',
      SQLITE,
      'rows are read in pages',
    ],
    [
      'the history of a key lacks its replaced versions',
      '[table.history, table.live].flatMap',
      '[table.live].flatMap',
      VALUES,
    ],
  ]),
  ...inFile('src/stores/sqlite/migrate-log.ts', MOVED, [
    [
      'tombstones are left behind',
      'from tidemark_rows where tenant_id = ? and database_id = ? and status <> 0',
      'from tidemark_rows where tenant_id = ? and database_id = ? and status > 2',
    ],
    [
      'an entry that was moved is moved again',
      "connection.run('update tidemark_migration set moved = ? where database_id = ?', last",
      "connection.run('update tidemark_migration set moved = ? - 1 where database_id = ?', last",
    ],
    [
      'replaced versions are left behind',
      'select ?, ?, ${all} from ${table.name} where _key = ?`',
      'select ?, ?, ${all} from ${table.name} where _key = ? and false`',
    ],
  ]),
  ...inFile('src/stores/postgres/table.ts', VALUES_PG, [
    [
      'a column is added to the table and not to its history',
      '[table.name, table.history].map((name) => `alter',
      '[table.name].map((name) => `alter',
    ],
    [
      'the columns that were added are forgotten',
      "transaction.send('update tidemark.databases set layout = $3 where tenant_id = $1 and database_id = $2'",
      "String('update tidemark.databases set layout = $3 where tenant_id = $1 and database_id = $2'",
    ],
    [
      'a timestamp loses its last zeros',
      "text.slice(20, end).padEnd(decimals, '0')",
      'text.slice(20, end)',
      VALUES_PG,
      'instants in',
    ],
    [
      'a timestamp loses its offset',
      'text.length - 3, format) + format.slice(1)',
      "text.length - 3, format) + 'Z'",
      VALUES_PG,
      'instants in',
    ],
    [
      'a number of many digits is refused',
      'text.length > 100_000 && /',
      'text.length > 100_000_000 && /',
      ROWS_PG,
      'XD17',
    ],
    [
      'a column of the user’s is taken for one of the table',
      '[...RESERVED_NAMES, ...foreign]',
      '[...RESERVED_NAMES]',
      WALLS,
    ],
    ['a reader who holds the table fails the page', 'refusals: [LOCK_NOT_AVAILABLE]', 'refusals: []', WALLS],
  ]),
  ...inFile('src/stores/postgres/rows.ts', POSTGRES, [
    ['a version ends one sequence too early', "until: 'w.c0',", "until: 'w.c0 - 1',", POSTGRES, 'invariant 8'],
    [
      'records are written with the columns of before',
      'tables.set(database, await growTable(transaction, table, records, sequence, facts.driftCollector))',
      'await growTable(transaction, table, records, sequence, facts.driftCollector)',
      VALUES_PG,
      'booleans',
    ],
    [
      'a deletion keeps no version',
      'bigintArray(live.map(({ sequence }) => sequence))',
      'bigintArray([])',
      VALUES_PG,
      'booleans',
    ],
    [
      'a deleted row leaves no tombstone',
      `STATUS_CODES.deleted) },
    { name: 'upstream_at'`,
      `STATUS_CODES.live) },
    { name: 'upstream_at'`,
      POSTGRES,
      'invariant 6',
    ],
  ]),
  ...inFile(
    'src/stores/kit/tables/fit-row.ts',
    ROWS_PG,
    [
      [
        'a wide row does not fit its page',
        'if (!mayExceedRow(columns, limits)) return encoded',
        'if (values.length > 0) return encoded',
      ],
      [
        'what was left over is lost with what does not fit',
        'values: { ...moved, ...extra.values }',
        'values: { ...moved }',
      ],
    ],
    'XD13',
  ),
  ...inFile('src/stores/postgres/commits.ts', POSTGRES, [
    [
      'a sequence that was never given has a time',
      'found.last < sequence ? null',
      'found.last < 0 ? null',
      POSTGRES,
      'XA17|feed returns',
    ],
  ]),
  ...inFile('src/stores/postgres/log.ts', POSTGRES, [
    [
      'a replaced version is left out',
      '(live ? [table.live] : [table.live, table.history])',
      '[table.live]',
      VALUES_PG,
      'booleans',
    ],
    [
      'a deletion is left out',
      '...(live ? [] : [readDeletions(',
      '...(limit > 0 ? [] : [readDeletions(',
      POSTGRES,
      'XF6|feed returns|invariant 8',
    ],
    [
      'the first entry after a place is skipped',
      "where: '_sequence > $1 and",
      "where: '_sequence > $1 + 1 and",
      POSTGRES,
      'above a sequence',
    ],
    [
      'an update is called a creation',
      "created === sequence ? 'created' : 'updated'",
      "'created'",
      POSTGRES,
      'N13 a new key',
    ],
    [
      'the last entry of a commit gets the facts of the next one',
      'commit.last < version.sequence',
      'commit.last <= version.sequence',
      POSTGRES,
      'feed returns|above a sequence',
    ],
    [
      'entries behind a cut are not held back',
      '.filter(({ sequence }) => sequence <= complete)',
      '',
      ROWS_PG,
      'size of its columns',
    ],
    ['a log with gaps ends with the commits that were read first', 'from = end\n', 'from = until\n', ROWS_PG, 'XE13'],
  ]),
  ...inFile('src/stores/postgres/copy.ts', VALUES_PG, [
    ['the data of a COPY has no end', 'this.int16(-1)', 'this.int16(0)', VALUES_PG, 'booleans'],
    ['the length of the data is wrong', 'data.length + 4', 'data.length', VALUES_PG, 'booleans'],
    [
      'rows that are moved lose their last column',
      'writer.value(types[at] as SqlType, row[at] ?? null)',
      'writer.value(types[at] as SqlType, at === types.length - 1 ? null : (row[at] ?? null))',
      MOVED_PG,
    ],
  ]),
  ...inFile('src/stores/postgres/binary-values.ts', VALUES_PG, [
    ['a negative number beyond 64 bits becomes positive', 'negative ? 0x4000 : 0', '0', VALUES_PG, 'numbers beyond'],
    [
      'a negative whole number becomes another one',
      'this.#setInt32(Math.floor(value',
      'this.#setInt32(Math.trunc(value',
      VALUES_PG,
      'whole numbers',
    ],
    ['days are counted from the wrong day', '- 730_425', '- 730_424', VALUES_PG, 'dates'],
    [
      'January belongs to the year before and February does not',
      'month <= 2 ? civilYear',
      'month < 2 ? civilYear',
      VALUES_PG,
      'dates',
    ],
    ['every fourth year is a leap year', ' - Math.floor(yearOfEra / 100)', '', VALUES_PG, 'dates|instants in seconds'],
    [
      'a long text with characters beyond ASCII is cut',
      'this.#ensure(5 + length * 3)',
      'this.#ensure(5 + length)',
      VALUES_PG,
      'texts',
    ],
    ['a leap second is the next minute', ' && value.charCodeAt(17) !== SIX', '', VALUES_PG, 'milliseconds'],
    ['the seventh decimal of an instant is rounded up', 'value.length <= 27 && ', '', VALUES_PG, 'milliseconds'],
    [
      'the weight of a number beyond 64 bits is wrong',
      'Math.ceil(whole.length / 4) - 1',
      'Math.floor(whole.length / 4)',
      VALUES_PG,
      'numbers beyond',
    ],
    ['true is written as false', '= value ? 1 : 0', '= 0', VALUES_PG, 'booleans'],
  ]),
  ...inFile(
    'src/values/plain-decimal.ts',
    VALUES_PG,
    [['a small fraction becomes a large number', '`${sign}0.${', '`${sign}1.${']],
    'numbers beyond',
  ),
  ...inFile('src/stores/postgres/binary-arrays.ts', POSTGRES, [
    [
      'sequences beyond 32 bits are cut',
      'buffer.writeInt32BE(Math.floor(value / 2 ** 32), at + 4)',
      'buffer.writeInt32BE(0, at + 4)',
      ROWS_PG,
      'exceed 32 bits',
    ],
  ]),
  ...inFile('src/stores/kit/replace-nul.ts', ROWS_PG, [
    ['a NUL in a cursor fails the page', "text.replaceAll('\\0', '\\ufffd')", 'text'],
  ]),
  ...inFile('src/stores/postgres/insert-many.ts', POSTGRES, [
    [
      'all rows get the value of the first',
      ' && values.every((value) => value === values[0])',
      '',
      ROWS_PG,
      'thousands of deletions of one table',
    ],
    [
      'rows beyond the first statement are lost',
      'from += ROWS_PER_STATEMENT',
      'from = count',
      ROWS_PG,
      'thousands of quarantined',
    ],
  ]),
  ...inFile(
    'src/stores/postgres/connection.ts',
    ['test/stores/postgres-pool.pg.test.ts'],
    [['values are read as the program has set the driver', '      types: VALUE_PARSERS,\n', '']],
  ),
  ...inFile('src/stores/postgres/connection.ts', FAULTS, [
    [
      'COMMIT is sent although a statement could not be',
      'if (transaction.failure !== undefined) {\n      transaction.flush()',
      'if (transaction === null) {\n      transaction.flush()',
      FAULTS,
      'cannot send',
    ],
    [
      'a refused statement is taken for an unknown commit',
      `if (sent.status === 'rejected' && isServerRefusal(sent.reason)) throw sent.reason
`,
      '',
      WALLS,
    ],
    [
      'a column is added outside the transaction',
      '`release savepoint attempt; set local',
      '`release savepoint attempt; commit; begin; set local',
      POSTGRES,
      'XA3|fails half-way',
    ],
    [
      'a transaction that the server undid is not run again',
      '!isTransactionAborted(error) || attempt === ATTEMPTS_MAX) throw error',
      '!isTransactionAborted(error) || attempt > 0) throw error',
      ['test/stores/postgres-locks.pg.test.ts'],
    ],
    ['timestamps are read in the zone of the server', "['TimeZone', 'UTC'], ", '', VALUES_PG, 'instants in'],
  ]),
  ...inFile('src/stores/postgres/commit.ts', POSTGRES, [
    [
      'a table that was dropped by an erasure is remembered',
      'session.connection.clearCachedTables(session.tenant)',
      'session.tenant === null',
      POSTGRES,
      'Z14 a tenant is erased',
    ],
    [
      'rows of another owner count as unchanged',
      ' && commit.owners === undefined',
      '',
      POSTGRES,
      'sync of several databases',
    ],
    [
      'rows are looked up in the table that was there before',
      'const rows = isStale ? ',
      'const rows = isStale && session === null ? ',
      ROWS_PG,
      'Z14',
    ],
  ]),
  ...inFile('src/stores/postgres/migrate-log.ts', MOVED_PG, [
    [
      'tombstones are left behind',
      'from tidemark.old_rows where tenant_id = $1 and status <> 0',
      'from tidemark.old_rows where tenant_id = $1 and status > 2',
    ],
    [
      'replaced versions are left behind',
      'else if (entry.until_sequence !== null) replaced.push',
      'else if (entry.until_sequence === 0) replaced.push',
    ],
    [
      'an entry at the border of two steps is left behind',
      'entries.length < chunk ? -1 : (entries.at(-1)?.sequence ?? -1)',
      'entries.length < chunk ? -1 : (entries.at(-1)?.sequence ?? -1) + 1',
    ],
  ]),
]
