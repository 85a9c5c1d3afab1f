import { inFile, type PlantedBug } from './planted-bug.ts'

const SUITE = ['test/destinations/memory.test.ts', 'test/destinations/loop.test.ts']

export const DESTINATION_BUGS: readonly PlantedBug[] = [
  ...inFile('src/destinations/kit/is-next-step.ts', SUITE, [
    ['an older epoch is accepted', 'token.epoch > next.epoch', 'token.epoch < 0'],
    ['any sequence is accepted', 'a.sequence === b.sequence', 'true'],
  ]),
  // The suite itself would load a database that follows without end.
  ...inFile(
    'src/destinations/loop/decide-start.ts',
    ['test/destinations/loop.test.ts'],
    [
      ['rows of another store are accepted', 'token.storeId !== log.storeId', 'false'],
      ['a destination behind the kept history follows', 'live.sequence < log.floor', 'live.sequence < 0'],
      ['a log with other commit times is accepted', 'committedAt !== token.committedAt', 'committedAt < 0'],
    ],
  ),
  ...inFile('src/destinations/loop/compact-changes.ts', SUITE, [
    ['every mode is compacted', "if (mode !== 'mirror') return [...changes]", ''],
  ]),
]
