import { inFile, type PlantedBug } from './planted-bug.ts'

const RANGES = ['test/engine/range-read.test.ts']
const PARTITION_READS = ['test/engine/partition-read.test.ts']
const DUE = ['test/runner/due.test.ts']
const ORDER = ['test/config/sync-order.test.ts']

/** Range reads, start dates, the order of syncs and states of other tools. */
export const RANGE_BUGS: readonly PlantedBug[] = [
  ...inFile('src/engine/page-transition.ts', RANGES, [
    [
      'a range read sweeps the rows outside it',
      'if (range !== undefined) return null\n  return partitions',
      'return partitions',
    ],
    ['a range read claims a tidemark', 'if (readsPart(plan)) return null', ''],
  ]),
  ...inFile('src/engine/cycle-actions.ts', RANGES, [
    ['an unfinished read of another range is continued', ' || isOfOtherRange)', ')'],
  ]),
  ...inFile('src/engine/range-plan.ts', RANGES, [
    ['a range that ends before it begins is read', 'range.from >= range.to)', 'false)'],
    [
      'the backfill and the range read share a checkpoint',
      "sync: toRangeName(pair?.role === 'backfill' ? pair.delta : sync),",
      'sync,',
    ],
    ['a range read is not a listing', "mode: 'replace',", "mode: 'incremental',"],
  ]),
  ...inFile(
    'src/worker/worker.ts',
    ['test/config/sync-order.test.ts'],
    [
      [
        'a delta does not know that a range is read beside it',
        "return [...neighbours.filter(({ mode }) => mode === 'replace').map(({ name }) => name), ...new Set(ranges)]",
        "return neighbours.filter(({ mode }) => mode === 'replace').map(({ name }) => name)",
      ],
      ['an unknown parent is accepted', 'checkParents([...this.#syncs.values()])', ''],
      ['a cycle of parents is accepted', 'checkNoCycle([...this.#syncs.values(), declaration], name)', ''],
    ],
  ),
  ...inFile(
    'src/engine/open-cycle.ts',
    ['test/engine/replace.test.ts'],
    [
      [
        'a first scope counts as unchanged',
        'known !== scope && (known !== null || lastSuccessAt !== null)',
        'known !== scope && known !== null',
      ],
    ],
    'XE12',
  ),
  ...inFile(
    'src/sources/kit/since.ts',
    ['test/sources/kit/since.test.ts'],
    [
      ['a start date does not change the scope', '`${page.scope} ${scope}`', 'page.scope'],
      ['a range may begin before the start date', '(from !== undefined && from >= since)', 'from !== undefined'],
    ],
  ),
  ...inFile('src/runner/due.ts', DUE, [
    ['a sync does not wait for its parents', 'if (waitingFor.length > 0) return', 'if (false) return'],
    ['a failed child waits for its parents again', '!failed &&', ''],
    ['a repairing backfill waits for its parents', '!(isNeeded && checkpoint.backfillNeeded !== null) &&', ''],
  ]),
  ...inFile('src/runner/parents.ts', DUE, [
    ['one completion of a parent starts its child forever', 'completedAt <= lastStartedAt', 'false'],
    ['a pair without its backfill counts as complete', 'backfill !== null && (', 'false && ('],
  ]),
  ...inFile(
    'src/runner/sync-watcher.ts',
    ['test/runner/runner.test.ts'],
    [['a child is not woken by its parent', 'if (hasChanged) this.#updateChildren(job)', '']],
  ),
  ...inFile(
    'src/runner/restate/waker.ts',
    ['test/runner/restate/waker.test.ts'],
    [
      [
        'an object does not notice that its parents completed',
        'fingerprint: job.fingerprint,',
        'fingerprint: String(job.checkpoint.version),',
      ],
    ],
  ),
  ...inFile('src/worker/sync-order.ts', ORDER, [
    ['the halves of a pair are separate', "pair?.role === 'backfill' ? pair.delta : name", 'name'],
    ['children may run before their parents', 'if (found !== undefined) add(found)', ''],
  ]),
  ...inFile(
    'src/sources/sql/source.ts',
    ['test/sources/sql/sqlite.test.ts'],
    [
      [
        'a lookup finds rows from before the start date',
        'since: await readSinceBound(database, plan, options),\n        upper: null,',
        'upper: null,',
      ],
      [
        'the backfill ignores the start date',
        'readPage(database, plan, { lower, since, upper, order: plan.key }, options)',
        'readPage(database, plan, { lower, upper, order: plan.key }, options)',
      ],
    ],
    'start date',
  ),
  ...inFile(
    'src/sources/sql/time-bounds.ts',
    ['test/sources/sql/sqlite.test.ts'],
    [['the end of a range is included', "bound: '<' }", "bound: '<=' }"]],
    'a range is read',
  ),
  ...inFile(
    'src/sources/odata/query.ts',
    ['test/sources/odata/requests.test.ts'],
    [['a range leaves out its last day', "isWithinDay ? 'le' : 'lt'", "'lt'"]],
  ),
  ...inFile(
    'src/sources/servicenow/source.ts',
    ['test/sources/servicenow.test.ts'],
    [
      [
        'the backfill ignores the start date',
        'withSinceScope(list(limitRange({}, since)), since)',
        'withSinceScope(list({}), since)',
      ],
    ],
    'start date',
  ),
  ...inFile(
    'src/strategies/offsets.ts',
    ['test/strategies/offsets.test.ts'],
    [
      [
        'a start after the end of the cycle skips messages',
        'minOffset(maxOffset(low, starts[partition] ?? low), end)',
        'maxOffset(low, starts[partition] ?? low)',
      ],
    ],
  ),
  ...inFile(
    'src/sources/singer/import-state.ts',
    ['test/sources/singer/import-state.test.ts'],
    [
      [
        'the bookmarks of other streams are imported',
        'Object.fromEntries(found.map((name) => [name, bookmarks[name] as JsonValue]))',
        'bookmarks',
      ],
    ],
  ),
  ...inFile(
    'src/strategies/kit/timestamp-paging.ts',
    ['test/sources/github-repository.test.ts'],
    [
      ['a full second stops the sync', 'if (options.readNumbered !== undefined) {', 'if (false) {'],
      [
        'one pass over a full second is enough',
        'const again = decideNextPass(read, null)',
        'const again = null as ListPass | null',
      ],
      [
        'a full second is read again in every cycle',
        'bounded ? { cursor: formatIso(horizonMs) } : undefined',
        'bounded ? { cursor: since } : undefined',
      ],
    ],
    'one second|leaves the second',
  ),
  ...inFile(
    'src/sources/evm/block-times.ts',
    ['test/sources/evm/indexers.test.ts'],
    [
      ['a block before the start date is read', '< fromMs) low = middle + 1', '< fromMs) low = middle'],
      ['a range of blocks has no end', '< toMs ? { ...page, items }', '< Infinity ? { ...page, items }'],
      ['a transfer at the end of the range is read', 'timeMs < toMs)', 'timeMs <= toMs)'],
    ],
    'times from',
  ),
  ...inFile(
    'src/sources/evm/source.ts',
    ['test/sources/evm/indexers.test.ts'],
    [['a range reads blocks that may be replaced', 'confirmationsMin: isRange ? depth : 0', 'confirmationsMin: 0']],
    'times from',
  ),
  ...inFile(
    'src/sources/github-stars/source.ts',
    ['test/sources/github-stars.test.ts'],
    [
      ['a list is read beyond the start date', 'isBefore(next?.starredAt, range.from) ||', ''],
      ['an older star on the last page is copied', '!isBefore(starredAt, range.from) &&', ''],
      ['a range of stars has no end', '&& isBefore(starredAt, range.to, true)', ''],
      [
        'a start date of stars does not change the scope',
        'withSinceScope(list, since)',
        '((...call) => list(...call)) as typeof list',
      ],
    ],
    'times',
  ),
  ...inFile(
    'src/sources/bookmarks/source.ts',
    ['test/sources/bookmarks.test.ts'],
    [
      [
        'a post from before the start date is copied',
        "(from === undefined || instant >= requireInstant(from, '`from`'))",
        'true',
      ],
      [
        'a range needs the complete list of bookmarks',
        "if (sweeps && context.cycle.mode === 'replace') checkReachable",
        "if (context.cycle.mode === 'replace') checkReachable",
      ],
    ],
    'times',
  ),
  ...inFile(
    'src/sources/airtable/source.ts',
    ['test/sources/airtable.test.ts'],
    [['a start date of a table selects nothing', 'filterByFormula: buildTimeFormula(range),', '']],
    'start date',
  ),
  ...inFile(
    'src/sources/kraken/source.ts',
    ['test/sources/kraken.test.ts'],
    [
      ['an entry at the end of the range is read', '&& timeMs < toMs)', ')'],
      [
        'a range of entries begins anywhere',
        'asIncremental(read(definition, limitRange(range, since)))',
        'asIncremental(read(definition, {}))',
      ],
    ],
    'a range',
  ),
  ...inFile(
    'src/sources/files/source.ts',
    ['test/sources/files/files.test.ts'],
    [
      ['a file from after the range is read', 'version.changedAtMs < toMs &&', ''],
      ['a range reads files whose rows have no order', 'key === undefined || updatedAt !== undefined', 'true'],
    ],
    'a range',
  ),
  ...inFile(
    'src/sources/kafka/source.ts',
    ['test/sources/kafka/simulated.test.ts'],
    [
      ['a range of a topic ends before a later message of its keys', 'if (range.to !== undefined)', 'if (false)'],
      ['a range begins before the start date of the topic', 'limitRange(range, since).from)', 'range.from)'],
    ],
    'a range|to the end of the topic',
  ),
  ...inFile('src/engine/partition-sweep.ts', PARTITION_READS, [
    [
      'a partition is swept by a sync that deletes nothing',
      '|| plan.partitions?.sweeps !== true) return null',
      ') return null',
    ],
    [
      'a row that moved to another partition is deleted',
      'if (rows.isFixed !== true && lookedUp === null) return null',
      '',
    ],
    [
      'the lookups of moved rows end with the delete limit',
      '...(lookedUp !== null && { confirmAbsent',
      '...(lookedUp !== null && allowDeletes !== true && { confirmAbsent',
    ],
    ['the sweep of a partition is that of the table', '    within,\n', ''],
    ['a renamed field is not found', 'rename.find(([from]) => from === field)?.[1] ?? field', 'field'],
    ['a masked field is compared', 'protect.some(({ path }) => path === field)', 'false'],
    ['a dropped field is compared', 'drop.includes(field) ||', ''],
  ]),
  ...inFile('src/engine/partition-plan.ts', PARTITION_READS, [
    [
      'a partition and the backfill share a checkpoint',
      "sync: toRangeName(pair?.role === 'backfill' ? pair.delta : sync),",
      'sync,',
    ],
  ]),
  ...inFile('src/engine/cycle-actions.ts', PARTITION_READS, [
    [
      'an unfinished read of another partition is continued',
      'readsPart(plan) && !continuesRange',
      'plan.range !== undefined && !continuesRange',
    ],
  ]),
  ...inFile('src/engine/page-transition.ts', PARTITION_READS, [
    [
      'a read of one partition claims a tidemark',
      'if (readsPart(plan)) return null',
      'if (plan.range !== undefined) return null',
    ],
  ]),
  ...inFile('src/strategies/partitioned.ts', PARTITION_READS, [
    [
      'all partitions are read for one',
      'answer.partitions.filter(({ key }) => selection.keys.has(key))',
      'answer.partitions',
    ],
    [
      'a partition that is not listed counts as read',
      'selection === undefined || listed === selection.keys.size',
      'true',
    ],
    ['a single partition is read in another mode', 'mode: selection.mode } }', 'mode: context.cycle.mode } }'],
  ]),
  ...inFile(
    'src/stores/sqlite/sweep.ts',
    ['test/stores/sqlite.test.ts'],
    [
      ['a sweep within a scope drops the claims outside it', 'if (within === undefined) {', '{'],
      [
        'a sweep within a scope deletes everything',
        '${scope.sql} order by t._key',
        ' and (1${scope.sql} or 1) order by t._key',
      ],
      [
        'a field without a column is in every scope',
        'if (name === null || within.values.length === 0) return null',
        "if (name === null || within.values.length === 0) return { sql: '', values: [] }",
      ],
      [
        'the delete limit of a scope counts the table',
        '_created_sequence <= ?${scope.sql} limit',
        '_created_sequence <= ? and (1${scope.sql} or 1) limit',
      ],
    ],
    'within a scope',
  ),
  ...inFile(
    'src/stores/postgres/sweep.ts',
    ['test/stores/postgres.pg.test.ts'],
    [
      ['a sweep within a scope deletes everything in PostgreSQL', 't._owner = $3 and t.is_inside', 't._owner = $3'],
      ['a sweep within a scope drops the claims outside it in PostgreSQL', 'if (within === undefined) {', '{'],
    ],
    'within a scope',
  ),
]
