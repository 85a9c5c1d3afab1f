import type { SourceReference } from '../kit/source-reference.ts'

export default {
  guide: 'files.md',
  auth: 'None for a folder of this machine; the AWS client of S3 finds its own credentials, or takes `client`.',
  streams: [['files(options)', 'incremental', 'the rows of CSV, TSV, NDJSON and Parquet files, also packed with gzip']],
  lag: '`settleMs`.',
  retention: 'No limit.',
  deletions: 'Rows that a new version of a file omits; deleted files, with `deletedFiles`.',
  pace: 'Not applicable to a folder; S3 by its client.',
  groups: [
    {
      title: 'files(options)',
      file: 'files/source.ts',
      name: 'FilesOptions',
      members: {
        folder: [null, 'Path of a folder, read with all below it; or `s3Folder(options)`.'],
        match: [
          'every `.csv`, `.tsv`, `.ndjson`, `.jsonl` (each also with `.gz`) and `.parquet`',
          'Which paths are read.',
        ],
        csv: ['none', 'See below.'],
        key: ['path and row number, `2026/orders.csv#17`', 'Columns that identify a row across all files.'],
        updatedAt: ['none', 'Column with the time of the last change: of two rows with one key, the newer stays.'],
        since: ['none', 'The start date, such as `2024-01-31`: files that last changed before it are not read.'],
        settleMs: ['10000', 'Milliseconds that a file must be unchanged before it is read.'],
        removedRows: [
          "`'delete'`",
          'What happens to a row that a new version of its file omits and no other file has. With `key`, the state remembers every key: about 300,000 UUIDs, or a few million sequential numbers.',
        ],
        deletedFiles: [
          "`'keep'`",
          "What happens to the rows of a deleted file. `'delete'` cannot be combined with `removedRows: 'keep'`.",
        ],
        pageSize: ['10000', 'Rows of a page. A page also ends at 32 MB, 1,000 files or 20 seconds.'],
      },
    },
    {
      title: 'csv',
      file: 'files/csv.ts',
      name: 'CsvOptions',
      members: {
        delimiter: ['a comma; a tab in `.tsv`', 'Between two fields.'],
        columns: ['the first line', 'Names of the columns, for files without a header.'],
      },
    },
    {
      title: 's3Folder(options)',
      file: 'files/s3-folder.ts',
      name: 'S3Options',
      members: {
        bucket: [null, 'The bucket.'],
        prefix: ['everything', 'Reads only objects below it, such as `sales/orders/`. Paths are shown without it.'],
        client: ["the client's own settings", 'Options of the AWS client: region, endpoint, credentials.'],
      },
    },
  ],
} satisfies SourceReference
