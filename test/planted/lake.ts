import { inFile, type PlantedBug } from './planted-bug.ts'

const SUITE = ['test/destinations/lake.test.ts']
const TABLES = ['test/destinations/lake-tables.test.ts']
const S3 = ['test/destinations/lake-s3.test.ts']

export const LAKE_BUGS: readonly PlantedBug[] = [
  ...inFile('src/destinations/lake/session.ts', SUITE, [
    [
      'a batch of the lake is applied whatever the token',
      "if (!isNextStep(positionOf(state), batch, step)) return 'refused'",
      '',
      SUITE,
      'Iceberg.*two appliers',
    ],
    [
      'files of others in the folder of a table are ignored',
      'if (foreign !== undefined)',
      'if (false as boolean)',
      TABLES,
      'not ours, another mode',
    ],
    ['another mode is written into the same table', 'live.mode !== mode', 'false', TABLES, 'not ours, another mode'],
    ['unused files are never removed', '% SWEEP_INTERVAL === 0', '% SWEEP_INTERVAL === -1', TABLES, 'unused files'],
    [
      'small files are never merged',
      'if (plan === null) return false',
      'if (plan !== undefined) return false',
      TABLES,
      'small files',
    ],
  ]),
  ...inFile('src/destinations/lake/versions.ts', TABLES, [
    [
      'a version that another process created counts as our own',
      'if ((await this.#storage.read(path))?.equals(bytes) !== true) return false',
      '',
      TABLES,
      'suspended',
    ],
    [
      'a repeated commit whose answer was lost counts as lost',
      'if ((await this.#storage.read(path))?.equals(bytes) !== true) return false',
      'return false',
      TABLES,
      'suspended',
    ],
    [
      'a number that was removed is used again',
      'version === 1 || (await',
      'version >= 1 || (await',
      TABLES,
      'suspended',
    ],
    ['a newer version than the hint is not found', 'if (next === null) break', 'break', TABLES, 'finds the newest'],
    ['the hint stays behind', 'if (version !== hint) await', 'if (version < 0) await', SUITE, 'Iceberg.*lost answer'],
  ]),
  ...inFile('src/destinations/lake/storage/local-storage.ts', TABLES, [
    [
      'a version replaces the one of another process',
      'await link(part, this.#resolve(path))',
      'await rename(part, this.#resolve(path))',
      TABLES,
      'of many that create',
    ],
    ['a full disk is reported as unavailable', "ENOSPC: 'DESTINATION_FULL',", '', TABLES, 'that is full'],
    ['a read-only folder is reported as missing', 'if (isMissing(error)) await mkdir(folder)', '', TABLES, 'read-only'],
  ]),
  ...inFile('src/destinations/lake/storage/s3-storage.ts', S3, [
    ['a version is written without a condition', ", IfNoneMatch: '*' }", ' }', S3, 'of two processes'],
    [
      'a server without conditional writes is accepted',
      'if (isCreated && (await this.create(CHECK_FILE, body)))',
      'if (isCreated && body.length === 0)',
      S3,
      'ignores conditional',
    ],
  ]),
  ...inFile('src/destinations/lake/key-index.ts', SUITE, [
    [
      'the oldest file with a key counts',
      'b.sequence - a.sequence',
      'a.sequence - b.sequence',
      SUITE,
      'Iceberg.*any run of changes',
    ],
    [
      'keys are compared up to the upper bound without it',
      'key.compare(bound) > 0',
      'key.compare(bound) >= 0',
      SUITE,
      'Iceberg.*follows every change',
    ],
  ]),
  ...inFile('src/destinations/lake/end-versions.ts', TABLES, [
    [
      'the first version that is found ends',
      'if (isLater || isEnd)',
      'if (other === undefined)',
      TABLES,
      'a history is merged',
    ],
    ['a version that ended ends again', 'if (row[isCurrent] !== true) continue', '', SUITE, 'Iceberg.*history'],
  ]),
  ...inFile('src/destinations/lake/compaction.ts', TABLES, [
    [
      'deleted rows come back when files are merged',
      'deleted: positions.get(file.path) ?? new Set()',
      'deleted: positions.get(`/${file.path}`) ?? new Set()',
      TABLES,
      'small files',
    ],
    [
      'positions of remaining files are dropped',
      'if (first !== undefined && positions.size > 0)',
      'if (first === undefined)',
      TABLES,
      'deleted rows',
    ],
  ]),
  ...inFile('src/destinations/lake/merge-files.ts', TABLES, [
    ['merged rows are not in order', 'compareSortKeys(first.sortKey, limit) <= 0', 'true', TABLES, 'small files'],
  ]),
  ...inFile('src/destinations/lake/write-rows.ts', TABLES, [
    [
      'rows are sorted by UTF-16 units',
      "if (typeof key !== 'string' || SURROGATE.test(key)) return false",
      "if (typeof key !== 'string') return false",
      TABLES,
      'order of bytes',
    ],
  ]),
  ...inFile('src/destinations/lake/parquet/write-file.ts', TABLES, [
    ['statistics are those of UTF-16 units', 'SURROGATE.test(value)', 'false', TABLES, 'order of bytes'],
  ]),
  ...inFile('src/destinations/lake/encode-values.ts', TABLES, [
    ['a decimal with other decimals loses its text', 'decimalsOf(item) === scale', 'true', TABLES, 'every type'],
    ['microseconds are dropped', "BigInt(decimals.padEnd(3, '0'))", '0n', TABLES, 'every type'],
  ]),
  ...inFile('src/destinations/lake/sweep.ts', TABLES, [
    ['files of a commit in progress are removed', 'changedAtMs < before && ', '', TABLES, 'unused files'],
  ]),
  ...inFile('src/destinations/lake/iceberg/snapshots.ts', TABLES, [
    ['snapshots are never dropped', 'if (!isKept) continue', '', TABLES, 'bounded number'],
  ]),
  ...inFile('src/destinations/lake/iceberg/iceberg-format.ts', TABLES, [
    [
      'a table that was moved is written to',
      'if (metadata.location !== this.#location)',
      'if (metadata.location === null)',
      TABLES,
      'another program',
    ],
    [
      'a snapshot of another program is ignored',
      'if (token === null)\n',
      'if (columns === null)\n',
      TABLES,
      'another program',
    ],
  ]),
  ...inFile('src/destinations/lake/build-change.ts', TABLES, [
    [
      'a delete file covers several partitions',
      'groupBy(inputs, ({ file }) => partitionKey(file.partition))',
      "groupBy(inputs, () => '')",
      ['test/destinations/lake-tables.test.ts'],
      'deletes of its own',
    ],
    [
      'a load keeps the columns that it replaces',
      'const before = isFirst ? null :',
      'const before =',
      SUITE,
      'Iceberg.*requested load',
    ],
  ]),
  ...inFile('src/destinations/lake/plain/plain-format.ts', SUITE, [
    [
      'a file that was written again stays in the list',
      '!isFirst && !change.removed.has(path)',
      '!isFirst',
      SUITE,
      'Parquet.*follows every change',
    ],
    [
      'a load is listed before it is complete',
      "isLast || target === 'live' ? branch",
      'true ? branch',
      SUITE,
      'Parquet.*requested load',
    ],
  ]),
]
