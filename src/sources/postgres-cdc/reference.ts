import { secretOption, type SourceReference } from '../kit/source-reference.ts'

export default {
  guide: 'postgres-cdc.md',
  auth: 'An account with REPLICATION, and SELECT on the tables; `wal_level = logical`.',
  streams: [['postgresCdc(options)', 'backfill and delta', 'the rows of the tables, by a replication slot']],
  lag: 'None: the log is in commit order.',
  retention: 'As long as the slot holds the log; a missing or overtaken slot requests the backfill.',
  deletions: 'Yes.',
  pace: 'One connection; the server does not throttle.',
  groups: [
    {
      title: 'postgresCdc(options)',
      file: 'postgres-cdc/source.ts',
      name: 'PostgresCdcOptions',
      members: {
        url: secretOption('`postgres://…`'),
        tables: [null, 'At least one; see below.'],
        slot: ['`tidemark`', 'Replication slot of this sync alone: small letters, digits and `_`, up to 63.'],
        publication: ['`tidemark`', 'Created when it does not exist.'],
        pageSize: [
          '1000',
          'Changes of a page. A page ends with the transaction that fills it; one ten times as large is split.',
        ],
      },
    },
    {
      title: 'tables',
      file: 'postgres-cdc/replicated-tables.ts',
      name: 'CdcTable',
      members: {
        table: [null, '`schema.table`, or both names as a list.'],
        database: ['that of the sync', 'The database its rows are written to.'],
        key: ['the primary key', 'Columns that identify a row.'],
      },
    },
  ],
} satisfies SourceReference
