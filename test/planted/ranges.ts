import { inFile, type PlantedBug } from './planted-bug.ts'

const RANGES = ['test/engine/range-read.test.ts']
const DUE = ['test/runner/due.test.ts']
const ORDER = ['test/config/sync-order.test.ts']

/** Range reads, start dates, the order of syncs and states of other tools. */
export const RANGE_BUGS: readonly PlantedBug[] = [
  ...inFile('src/engine/page-transition.ts', RANGES, [
    [
      'a range read sweeps the rows outside it',
      'replace && context.plan.range === undefined && isSweepable',
      'replace && isSweepable',
    ],
    ['a range read claims a tidemark', 'if (range !== undefined) return null', ''],
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
]
