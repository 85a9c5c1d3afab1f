import { inFile, type PlantedBug } from './planted-bug.ts'

const POSTGRES = ['test/stores/postgres.pg.test.ts']
const LOOKUPS = ['test/stores/tables/lookups.pg.test.ts']
const ROWS_PG = ['test/stores/tables/rows.pg.test.ts']
const TRANSCODER = ['test/stores/tables/transcode-record.test.ts']

/** Mistakes in the functions of a commit, and in the comparison of a page with the stored rows. */
export const POSTGRES_COMMIT_BUGS: readonly PlantedBug[] = [
  ...inFile('src/stores/postgres/transcode-record.ts', TRANSCODER, [
    [
      'an absent field becomes null',
      "if (start === ABSENT) return column.none === 'absent' &&",
      'if (start === ABSENT) return',
      TRANSCODER,
      'or is left to the parser|lack some',
    ],
    [
      'a null becomes an absent field',
      "if (first === LETTER_N) return column.none === 'null' &&",
      'if (first === LETTER_N) return',
      TRANSCODER,
      'or is left to the parser|lack some',
    ],
    [
      'a number of many digits is rounded',
      'if (++digits > DIGITS_MAX) return Number.NaN',
      'digits++',
      TRANSCODER,
      'as bigint|as double|or is left',
    ],
    ['-0 becomes 0', '|| (isNegative && number === 0)', '', TRANSCODER, 'as bigint|as double'],
    ['a nested number keeps its zeros', '(hasPoint && SCRATCH[at - 1] === DIGIT_0)', 'false', TRANSCODER, 'as json'],
    [
      'a field without a column is lost',
      'if (index === -1) return false',
      'if (index === -1) return true',
      TRANSCODER,
      'or is left to the parser|lack some',
    ],
    [
      'a refused row leaves bytes behind',
      '      writer.rewind(length)\n',
      '',
      TRANSCODER,
      'or is left to the parser|as bigint|lack some',
    ],
  ]),
  ...inFile('src/stores/postgres/migrations/0023-commit-functions.ts', POSTGRES, [
    [
      'two commits of a tenant get the same sequences',
      'from tidemark.tenants t where t.tenant_id = tenant for update;',
      'from tidemark.tenants t where t.tenant_id = tenant;',
      POSTGRES,
      'concurrent|two connections|no gap',
    ],
    [
      'another cycle sweeps what this one saw',
      "g.inflight_mode = 'replace' and g.sync_id <> sync",
      "g.inflight_mode = 'incremental' and g.sync_id <> sync",
      POSTGRES,
      'invariant 5|F7|sweep|invariant 8',
    ],
    [
      'a second page forgets what the first protected',
      'set ranges = seen.ranges + excluded.ranges',
      'set ranges = excluded.ranges',
      POSTGRES,
      'invariant 5|F7|sweep',
    ],
    [
      'the page of a cycle stays where it was',
      'inflight_page = page_number, inflight_state',
      'inflight_page = g.inflight_page, inflight_state',
      POSTGRES,
      'invariant 1',
    ],
    [
      'a guard of an unfinished cycle is lost',
      'inflight_guard = next_guard',
      'inflight_guard = null',
      LOOKUPS,
      'unfinished cycle',
    ],
    [
      'the evidence of an unfinished page is lost',
      'page = case when continues then page_number end',
      'page = null',
      LOOKUPS,
      'unfinished cycle',
    ],
    [
      'updated rows count as deleted',
      'updated = updated + counts[2], deleted = deleted + counts[3]',
      'updated = updated + counts[3], deleted = deleted + counts[2]',
      POSTGRES,
      'counts|record of a cycle',
    ],
    [
      'the sequences of a commit are not in the directory',
      'select tenant, unnest(firsts), unnest(lasts)',
      'select tenant, unnest(firsts), unnest(firsts)',
      POSTGRES,
      'invariant 8',
    ],
  ]),
  ...inFile('src/stores/postgres/begin-commit.ts', POSTGRES, [
    ['an old epoch commits', 'entry.epoch === lease.epoch &&', '', POSTGRES, 'invariant 3'],
    [
      'a state that an old key sealed is stored',
      'used !== null && used !== newestKey',
      'used !== null && used === null',
      ['test/registry/data-keys.pg.test.ts'],
      'old data key in memory',
    ],
  ]),
  ...inFile('src/stores/postgres/find-rows.ts', LOOKUPS, [
    [
      'a page beside tombstones counts as new',
      'order by key limit 1) > $4::text, true) as "isEmpty"`',
      'order by key limit 1) > $4::text, true) or true as "isEmpty"`',
      POSTGRES,
      'XD24|invariant 8|invariant 6|older',
    ],
    [
      'rows of another time count as the same when they are found one by one',
      'coalesce(r.c0 = w.hash and r._upstream_at is not distinct from w.at and',
      'coalesce(r.c0 = w.hash and',
      POSTGRES,
      'XD24|invariant 8|invariant 6|unchanged|older',
    ],
    [
      'a page of other times counts as unchanged',
      ' or c.at is distinct from c.wanted_at`',
      '`',
      ROWS_PG,
      'later times',
    ],
    [
      'rows of a range that misses a key are compared with their neighbours',
      "if (isAligned !== 'true') return null\n",
      '',
    ],
    [
      'the columns of a record take the names of the lookup',
      'select _sequence, _upstream_at, _writer, _owner, ${columns.map((column, at) => `${column} as c${at}`)',
      'select _sequence, _upstream_at, _writer, _owner, ${columns.map((column, at) => `${column} as c${columns.length - at - 1}`)',
    ],
    [
      'rows of another owner count as unchanged in a range',
      'and owner_min = ${OWNER} and owner_max = ${OWNER} and not',
      'and not',
      POSTGRES,
      'owner|sweep|F7',
    ],
    [
      'a contest is overlooked in a range',
      ' and not ${CONTESTS})::text, sequences',
      ')::text, sequences',
      POSTGRES,
      'contest',
    ],
    [
      'a row that is deleted is found',
      "'_hash', '_extra', ...members.map(({ name }) => name)]",
      "'_hash', '_extra', ...members.map(({ name }) => name)]; live = live.replace(/^.*?from (.*?) where.*$/, '$1')",
      POSTGRES,
      'returns unchanged',
    ],
  ]),
  ...inFile('src/stores/postgres/table.ts', LOOKUPS, [
    ['every record with a text is another one', 'return value !== stored\n', 'return true\n'],
    ['every record with a boolean is another one', "value !== (stored === 't')", "value !== (stored === 'true')"],
    [
      'an overridden column decides that a record is another one',
      `extra === null &&
      columns.some(`,
      `columns.some(`,
      ['test/stores/tables/lookups.pg.test.ts'],
    ],
  ]),
  ...inFile('src/stores/postgres/commit.ts', LOOKUPS, [
    [
      'a record is compared with the columns of before',
      ' || now?.members !== before?.members',
      '',
      LOOKUPS,
      'another process has added',
    ],
    [
      'the head of the log stays where it was',
      'headSequence: headSequence > tenant.sequence ? headSequence : null,',
      'headSequence: null,',
      POSTGRES,
      'invariant 8',
    ],
    [
      'what a page that sweeps saw is recorded after the sweep',
      `    recordPage(transaction, facts, written)
    written = {}
`,
      '',
      POSTGRES,
      'invariant 5|sweep',
    ],
  ]),
]
