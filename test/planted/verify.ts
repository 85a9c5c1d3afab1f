import { inFile, type PlantedBug } from './planted-bug.ts'

const RUN = ['test/verify/verify-database.test.ts']
const BISECT = ['test/verify/bisect.test.ts']
const POSTGRES = ['test/verify/sql.pg.test.ts']
const INTERVALS = ['test/sources/sql/integer-intervals.test.ts']

export const VERIFY_BUGS: readonly PlantedBug[] = [
  ...inFile('src/verify/bisect.ts', BISECT, [
    ['the second half of a range is taken to be equal', 'keep({ first: half.end, end }, subtract(source, answer))', ''],
    ['digests are not compared', ' && (b.digest === undefined || a.digest === b.digest)', ''],
    ['counts are not compared', 'a.count === b.count && (', '('],
  ]),
  ...inFile('src/verify/record-digest.ts', POSTGRES, [
    ['characters beyond U+FFFF count twice', 'if (unit < 0xd800 || unit > 0xdbff) continue', 'continue'],
    ['the length of a value is not part of the digest', 't${countCharacters(written)}:', 't:'],
  ]),
  ...inFile('src/verify/settle-differences.ts', RUN, [
    ['the lag of the source is not waited for', 'if (waitMs > 0) await clock.sleep(waitMs, signal)', ''],
    ['a record that changed between two looks is a difference', 'isSameRecord(record, candidate.record) && ', ''],
  ]),
  ...inFile('src/verify/coverage.ts', RUN, [
    ['a cycle that began with the first look settles a difference', 'completeSince > since', 'completeSince >= since'],
    ['the tidemark does not settle a difference', 'return upstreamAt <= tidemark &&', 'return false &&'],
    ['a version after the tidemark is settled', 'return upstreamAt <= tidemark &&', 'return '],
    [
      'a record that changed without a new time is settled at once',
      '(row === null || (row.upstreamAt !== null && row.upstreamAt < upstreamAt))',
      'true',
    ],
  ]),
  ...inFile('src/verify/request-budget.ts', RUN, [
    ['the budget has no effect', 'if (this.left < count) throw new BudgetError()', ''],
  ]),
  ...inFile('src/verify/verify-database.ts', RUN, [
    [
      'a repair ignores the delete limit',
      '!allowDeletes && exceedsDeleteLimit(',
      'allowDeletes && exceedsDeleteLimit(',
    ],
    ['the age of a difference is forgotten', 'Math.min(known.since, seenAt)', 'seenAt'],
    [
      'a repair deletes what the source has',
      'if (record === null) return isBlocked',
      'if (row !== null) return isBlocked',
    ],
  ]),
  ...inFile('src/engine/wait-for-lease.ts', RUN, [
    ['a repair does not wait for a running cycle', 'if (ports.clock.now() >= end)', 'if (true)'],
  ]),
  ...inFile('src/sources/sql/integer-intervals.ts', INTERVALS, [
    ['negative keys are in the order of their numbers', ': [1n - end, -first]', ': [-first, 1n - end]'],
  ]),
]
