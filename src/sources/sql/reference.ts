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
      members: {
        url: secretOption('`postgres://…`, `mysql://…`, `mariadb://…` or `sqlite:path`'),
        since: ['none', 'The start date of every table; each then needs a `cursor`.'],
      },
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
        since: [
          'none',
          'The start date, such as `2024-01-31`, or a number for an integer cursor: rows whose `cursor` is before it, or null, are not read.',
        ],
        pageSize: ['10000', 'Rows of a page; a page also ends at 32 MB.'],
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
        strict: [
          'false',
          'Queries with `>` and without an upper bound. Rows with the value of the last cursor, or visible late, are never read.',
        ],
      },
    },
  ],
} satisfies SourceReference
