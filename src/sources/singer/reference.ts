import type { SourceReference } from '../kit/source-reference.ts'

export default {
  guide: 'singer.md',
  auth: 'As the tap requires, by `config` and `environment`.',
  streams: [
    ['singer(options).stream(name, options)', 'incremental', 'a stream, resumed from the state of the tap'],
    ['singer(options).listing(name, options)', 'replace', 'all records of a stream; without `cursor` and `method`'],
    ['singer(options).streams(databases)', 'incremental', 'several streams with one run of the tap'],
  ],
  lag: 'Depends on the tap.',
  retention: 'Depends on the source of the tap; set `retentionMs` of the sync.',
  deletions: 'With `listing`, or as the tap marks them (`_sdc_deleted_at`).',
  pace: 'By the tap itself.',
  groups: [
    {
      title: 'singer(options)',
      file: 'singer/source.ts',
      name: 'SingerOptions',
      members: {
        command: [null, 'The program and its arguments. Never a secret: other users can read arguments.'],
        config: ['none', 'Configuration of the tap. `${NAME}` alone is replaced by a secret.'],
        catalog: ['requested from the tap in every cycle', 'The catalog, or `none`.'],
        catalogFlag: ['`--catalog`', '`--properties` for old taps.'],
        environment: [
          '`PATH`, `HOME`, language',
          'Additional environment variables of the tap; `${NAME}` alone is replaced by a secret.',
        ],
        folder: ['that of this process', 'Working directory.'],
        pageSize: ['1000', 'Records after which the next STATE ends a page; without any, ten times as many.'],
        quietMaxMs: ['900000', 'A tap that writes nothing for this long is stopped.'],
      },
    },
    {
      title: 'stream(name, options), listing(name, options)',
      file: 'singer/source.ts',
      name: 'TapStreamOptions',
      members: {
        key: ['as the tap declares', 'Fields that identify a record; `hash` for the whole record.'],
        updatedAt: ['none', 'Field with the time of the last change.'],
      },
    },
    {
      title: 'stream(name, options), additional options',
      file: 'singer/catalog.ts',
      name: 'StreamSelection',
      members: {
        cursor: ['as the tap does', 'The replication key.'],
        method: ['as the tap does', '`INCREMENTAL` or `LOG_BASED`.'],
      },
    },
  ],
} satisfies SourceReference
