import { lagOption, SAFETY_WINDOW_OPTION, secretOption, type SourceReference } from '../kit/source-reference.ts'

export default {
  guide: 'sql.md',
  auth: 'A URL of PostgreSQL, MySQL, MariaDB or SQLite; the account needs SELECT.',
  streams: [
    ['sql(options).table(name, options)', 'backfill and delta', 'a table by its `cursor`'],
    ['sql(options).listing(name, options)', 'replace', 'all rows of a table'],
  ],
  lag: '`lagMs`, 30 seconds by default; open transactions are also waited for.',
  retention: 'No limit.',
  deletions: '`listing`; `table` with `deleted`, else by the backfill.',
  pace: 'None: one query at a time.',
  groups: [
    {
      title: 'sql(options)',
      file: 'sql/source.ts',
      name: 'SqlOptions',
      members: { url: secretOption('`postgres://…`, `mysql://…`, `mariadb://…` or `sqlite:path`') },
    },
    {
      title: 'table(name, options), listing(name, options)',
      file: 'sql/source.ts',
      name: 'TableOptions',
      members: {
        key: ['the primary key', 'Columns that identify a row; none may be null.'],
        cursor: ['none', 'Column that every change increases: a timestamp, a date or an integer.'],
        columns: ['all', 'Columns to read, in addition to key and cursor.'],
        deleted: ['none', 'Column that marks a deleted row: true, or anything but null, false and 0.'],
        pageSize: ['10000', 'Rows of a page; a page also ends at 32 MB.'],
        partitions: ['1', 'Ranges of the key that a full refresh or a backfill reads; each resumes by itself.'],
        concurrency: ['1', 'Ranges that are read at the same time, each over its own connection; at most 32.'],
      },
    },
    {
      title: 'table(name, options), additional options',
      file: 'sql/source.ts',
      name: 'CursorOptions',
      members: {
        cursor: [null, 'As above; needed here.'],
        lagMs: lagOption('30000'),
        safetyWindow: SAFETY_WINDOW_OPTION,
        since: ['the first row', 'Where a sync without state begins.'],
        strict: [
          'false',
          'Queries with `>` and without an upper bound. Rows with the value of the last cursor, or visible late, are never read.',
        ],
      },
    },
  ],
} satisfies SourceReference
