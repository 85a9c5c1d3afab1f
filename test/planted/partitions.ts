import { inFile, type PlantedBug } from './planted-bug.ts'

const STRATEGY = ['test/strategies/partitioned.test.ts']
const WORLDS = ['test/strategies/partitioned-worlds.test.ts']
const ENGINE = ['test/engine/partitions.test.ts']
const SQLITE = ['test/stores/sqlite.test.ts']
const SEALED = ['test/registry/sealed-partitions.test.ts']
const WINDOWS = ['test/strategies/date-windows.test.ts']

export const PARTITION_BUGS: readonly PlantedBug[] = [
  ...inFile('src/strategies/partitioned.ts', STRATEGY, [
    [
      'a partition that is not listed is read',
      'if (parsePartitionRecord(state).listed === this.#cycle.id)',
      'if (true)',
      WORLDS,
    ],
    ['a vanished partition keeps its row', 'this.#writes.set(key, null)\n', '', WORLDS],
    ['partitions are not counted', 'if (isEnd) this.#assertAllRead()', ''],
    ['one failure fails the page', '&& failures.length === settled.length && !hasListed', ''],
    ['a list is requested again with its first partitions', '&& !hasListed) throw', ') throw'],
    [
      'a failed partition waits for its turn',
      'const requested = failed.length > 0 ? failed : open',
      'const requested = open',
    ],
    [
      'an expired cursor fails the cycle',
      "if (stored.isPartial !== true || !isSyncError(error) || error.code !== 'CURSOR_REJECTED') throw error",
      'throw error',
    ],
    ['every rejected state starts over', 'stored.isPartial !== true ||', ''],
    ['a partition starts over without end', 'if (restarts >= RESTARTS_MAX) throw error', ''],
    ['a partition that starts over is a loop', '...(restarts > 0 && { restarts }),', ''],
    ['any error starts over', " || error.code !== 'CURSOR_REJECTED') throw error", ') throw error'],
    ['the tidemark ignores new partitions', 'return earlier(tidemark, until)', 'return tidemark'],
    [
      'the tidemark is that of the last partition',
      'cycle.tidemark === undefined ? instant : earlier(cycle.tidemark, instant)',
      'instant',
    ],
    ['the loop of a partition is hidden', 'mark: hashText(JSON.stringify(next)),', 'mark: this.#cycle.done,'],
    ['empty pages of a partition are not counted', '...(isEmpty && { empty: empty + 1 }),', ''],
    ['a global cursor reads new partitions late', 'return done === undefined || since', 'return since'],
    [
      'a replace cycle keeps the states of partitions',
      "this.#context.cycle.mode === 'incremental' && !this.#hasGlobalCursor\n",
      '!this.#hasGlobalCursor\n',
    ],
    ['more partitions are opened than allowed', 'if (open.length === concurrency) break', ''],
    ['the list ends too early', 'isLast: next === undefined', 'isLast: true', WORLDS],
  ]),
  ...inFile('src/strategies/kit/partition-record.ts', STRATEGY, [
    ['a replace cycle continues an earlier one', "(mode === 'replace' && record.listed !== cycle)", 'false'],
    ['the start of a reading is forgotten', '...(from !== undefined && { start: from }),', ''],
    ['the start of a reading moves', 'const from = isPartial === true ? start : requested', 'const from = requested'],
    ['the state of a complete partition is dropped', '...(state !== undefined && { state }) }', '}'],
  ]),
  ...inFile(
    'src/values/partition-overlay.ts',
    ['test/values/partition-overlay.test.ts'],
    [
      [
        'the next page does not see a removal',
        'if (state !== undefined && state !== null) found.set(key, state)',
        'if (state !== undefined) found.set(key, state)',
        ['test/values/partition-overlay.test.ts'],
      ],
      [
        'stored partitions hide written ones',
        '...stored.filter(({ key }) => !writes.has(key)), ...written',
        '...stored, ...written',
        ['test/values/partition-overlay.test.ts'],
      ],
      [
        'a page of the list is too short',
        'limit: limit + writes.size',
        'limit',
        ['test/values/partition-overlay.test.ts'],
      ],
      [
        'keys are ordered by UTF-16',
        'return Buffer.compare(Buffer.from(a), Buffer.from(b))',
        'return a < b ? -1 : 1',
        ['test/values/partition-overlay.test.ts'],
      ],
    ],
  ),
  ...inFile('src/engine/cycle-actions.ts', ENGINE, [
    [
      'the page read ahead does not see the partitions of the last one',
      'this.#startRead(state, 2, { partitions })',
      'this.#startRead(state, 2, {})',
    ],
  ]),
  ...inFile('src/engine/check-page.ts', ENGINE, [
    ['a partition may occur twice', "(keys.has(key) ? 'the key occurs twice' : null)", 'null'],
    ['an invalid key of a partition is accepted', 'findKeyFault(key) ?? (keys', '(keys'],
  ]),
  ...inFile('src/engine/commit-builder.ts', STRATEGY, [
    ['partitions are not committed', '...(checked.partitions.length > 0 && { partitions: checked.partitions }),', ''],
  ]),
  ...inFile('src/engine/loop-guard.ts', STRATEGY, [
    ['partitions without changes are a loop', ' && partitions.length === 0\n', '\n'],
  ]),
  ...inFile(
    'src/stores/kit/roles/partitions.ts',
    SQLITE,
    [
      ['a state that is set keeps the partitions', "if (transition.kind === 'set')", 'if (false)'],
      ['a removed partition stays', 'if (state === null)', "if (state === 'null')"],
      ['a set state names the last cycle', "cycle_id: transition.kind === 'set' ? null : cycle", 'cycle_id: cycle'],
      ['keys beyond the first query are missing', 'start += KEYS_PER_QUERY', 'start += keys.length'],
      ['the page of partitions begins again', "'and partition_key > :after'", "'and partition_key >= :after'"],
    ],
    'partition',
  ),
  ...inFile('src/stores/sqlite/commit.ts', SQLITE, [
    ['partitions are not written', '  writePartitions(session, entry, commit)\n', '', SQLITE, 'partition'],
  ]),
  ...inFile(
    'src/stores/postgres/commit.ts',
    ['test/stores/postgres.pg.test.ts'],
    [
      [
        'partitions are not written',
        '  writePartitions(transaction, entry, commit)\n',
        '',
        ['test/stores/postgres.pg.test.ts'],
        'partition',
      ],
    ],
  ),
  ...inFile('src/registry/sealed-store.ts', SEALED, [
    ['a state opens in another partition', "`p${hash('sha256', key, 'base64url')}`", "'p'"],
    ['states of partitions are not sealed', 'partitions.length === 0\n        ? given', 'true\n        ? given'],
  ]),
  ...inFile('src/stores/kit/roles/data-keys.ts', SEALED, [
    ['partitions keep the old data key', "if (table === 'partitions')", "if ((table as string) === 'none')"],
  ]),
  ...inFile('src/stores/kit/sealed-texts.ts', SEALED, [
    ['an old data key seals partitions', '[...states, ...partitions.map(({ state }) => state)]', 'states'],
  ]),
  ...inFile('src/registry/verify-audit-chain.ts', SEALED, [
    ['partitions are not verified', 'await openPartitions(store, ref)', ''],
  ]),
  ...inFile('src/strategies/date-windows.ts', WINDOWS, [
    ['the last day of a month drifts', 'Math.min(day, lastDay)', 'day'],
    [
      'the last window reaches beyond the span',
      'Math.min(addSteps(startMs, index + 1), untilMs)',
      'addSteps(startMs, index + 1)',
    ],
    [
      'a page of windows repeats its last one',
      'const next = first + WINDOWS_PER_PAGE',
      'const next = first + WINDOWS_PER_PAGE - 1',
    ],
  ]),
  ...inFile(
    'src/sources/sql/key-ranges.ts',
    ['test/sources/sql/key-ranges.test.ts'],
    [
      ['the last range is closed', 'index + 1 < partitions ? await', 'index < partitions ? await'],
      ['a boundary is in no range', "bound: '>' as const", "bound: '>=' as const"],
    ],
  ),
]
