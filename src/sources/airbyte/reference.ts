import type { SourceReference } from '../kit/source-reference.ts'

export default {
  guide: 'airbyte.md',
  auth: 'As the manifest declares; secrets by `config`.',
  streams: [
    ['airbyte(options).stream(name, options)', 'incremental', 'a stream with a `DatetimeBasedCursor`'],
    ['airbyte(options).stream(name, options)', 'replace', 'a stream without one, or with a client-side cursor'],
  ],
  lag: '60 s, set by `lagMs`.',
  retention: 'Depends on the source.',
  deletions: 'By the sweep of streams that replace. Incremental streams do not see deletions.',
  pace: 'By the `HTTPAPIBudget` of the manifest, and a pacer of yours.',
  groups: [
    {
      title: 'airbyte(options)',
      file: 'airbyte/source.ts',
      name: 'AirbyteOptions',
      members: {
        manifest: [null, 'Path of the manifest.'],
        config: [null, 'Settings of its specification. `${NAME}` alone is replaced by a secret.'],
        folder: ['that of this process', 'Folder of relative paths.'],
        tokens: ['in memory', 'Opens the durable token store of an account.'],
      },
    },
    {
      title: 'stream(name, options)',
      file: 'airbyte/stream-options.ts',
      name: 'AirbyteStreamOptions',
      members: {
        key: ['the primary key of the manifest', 'Fields that identify a record.'],
        mode: ['as the manifest declares', '`full_refresh` reads the complete list in every cycle.'],
        lagMs: ['60000', 'Milliseconds until a change is visible.'],
        since: [
          'as the manifest declares',
          'Records from this time on. Only for streams with a `DatetimeBasedCursor`.',
        ],
        concurrency: ['1', 'Partitions that are read at the same time.'],
      },
    },
  ],
} satisfies SourceReference
