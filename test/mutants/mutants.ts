import type { WorldConfig, WorldKind } from '../../src/testing/simulation/world-config.ts'

/** A bug, planted in a copy of the compiled code. */
export interface Mutant {
  readonly name: string
  /** In the built package; every `find` must occur exactly once. */
  readonly patches: ReadonlyArray<{ readonly file: string; readonly find: string; readonly replace: string }>
  /** The kinds of worlds that can reveal it. */
  readonly worlds: readonly WorldKind[]
  readonly overrides?: Partial<WorldConfig>
  /** Maximum number of seeds within which it must be found. */
  readonly seeds: number
  /** The seed that finds it, tried first: a search from seed 1 takes minutes. */
  readonly foundBy: number
}

const ACTIONS = 'engine/cycle-actions.js'
const CONNECTORS = 'testing/simulation/connectors.js'
const COMMIT = 'stores/sqlite/commit.js'
const REGISTRY = 'stores/kit/registry.js'
const LEASES = 'stores/kit/roles/leases.js'
const CHECKPOINT = 'stores/kit/checkpoint.js'
const SWEEP = 'stores/sqlite/sweep.js'
const RESOLVE = 'stores/kit/resolve-landing.js'
const PLAN = 'stores/kit/plan-landing.js'

/**
 * Two syncs that write the same few rows: timestamps often do not order two reads, and runners freeze between reading
 * and landing.
 */
const CONTENDED: Partial<WorldConfig> = {
  granularityMs: 1_000,
  lagMs: 0,
  skewMs: 0,
  runnerSkewMs: 0,
  stamped: true,
  plain: false,
  monotonic: true,
  emptyPages: false,
  unstorableShare: 0,
  records: 4,
  operations: 150,
  gapMs: 700,
  bulkShare: 0,
  deleteShare: 0.15,
  pageSize: 3,
  pagesMax: 100_000,
  runners: 3,
  runnerGapMs: 500,
  sourceLatencyMs: [20, 400],
  storeLatencyMs: [1, 50],
  leaseTtlMs: 10_000,
  rates: { freeze: 0.03 },
}

/** Listings from a replica that lags by up to its limit. */
const BEHIND: Partial<WorldConfig> = {
  monotonic: false,
  lagMs: 20_000,
  skewMs: 0,
  granularityMs: 1,
  stamped: true,
  plain: false,
}

/** A change feed with slow responses beside a fast listing, which misses some versions and deletes rows meanwhile. */
const SLOW_DELTA: Partial<WorldConfig> = {
  ...CONTENDED,
  granularityMs: 1,
  usesSourceTime: false,
  deletions: 'none',
  deleteShare: 0.3,
  records: 12,
  operations: 200,
  gapMs: 400,
  pageSize: 30,
  runners: 5,
  runnerGapMs: 3_000,
  sourceLatencyMs: [5, 50],
  responseLatencyMs: { incremental: [1_000, 10_000] },
  storeLatencyMs: [1, 10],
  leaseTtlMs: 2_000,
  rates: {},
}

/** A slow listing beside a fast delta, of records that are deleted and recreated unchanged. */
const SLOW_LISTING: Partial<WorldConfig> = {
  ...CONTENDED,
  granularityMs: 1,
  usesSourceTime: false,
  plain: true,
  deletions: 'none',
  deleteShare: 0.4,
  records: 10,
  pageSize: 2,
  sourceLatencyMs: [5, 50],
  responseLatencyMs: { replace: [100, 2_000] },
  storeLatencyMs: [1, 10],
  rates: {},
}

/** A source whose clock is occasionally wrong, so that a newer version of a record has an earlier time. */
const TIMES_GO_BACK: Partial<WorldConfig> = {
  backStampShare: 0.3,
  stamped: true,
  plain: false,
  granularityMs: 1,
  unstorableShare: 0,
}

export const MUTANTS: readonly Mutant[] = [
  // ── connectors ─────────────────────────────────────────────────────────────────────────────────────────────────────
  {
    name: 'a strict > on timestamps loses the rest of a tie',
    patches: [
      {
        file: CONNECTORS,
        find: 'phase, after: last, empty: 0',
        replace: "phase, after: last && [last[0], '\\uffff'], empty: 0",
      },
    ],
    worlds: ['delta'],
    seeds: 40,
    foundBy: 1,
  },
  {
    name: 'no upper bound: the cursor runs past rows that are not visible yet',
    patches: [
      { file: CONNECTORS, find: 'through = now - options.windowMs', replace: 'through = now + options.windowMs' },
    ],
    worlds: ['delta'],
    overrides: { lagMs: 20_000 },
    seeds: 60,
    foundBy: 7,
  },
  {
    name: 'the frontier jumps to the clock at the end of a cycle',
    patches: [{ file: CONNECTORS, find: 'since = Math.max(since ?? 0, after[0])', replace: 'since = cycle.startedAt' }],
    worlds: ['delta'],
    overrides: { lagMs: 20_000 },
    seeds: 60,
    foundBy: 7,
  },
  {
    name: 'an empty page is trusted at once',
    patches: [
      { file: CONNECTORS, find: 'return empty >= (line.source.contract.emptyPages ? 1 : 0)', replace: 'return true' },
    ],
    worlds: ['replace', 'delta'],
    overrides: { emptyPages: true, rates: { 'empty-page': 0.2 } },
    seeds: 40,
    foundBy: 7,
  },
  {
    name: 'a short page ends a listing',
    patches: [
      {
        file: CONNECTORS,
        find: 'source.list({ listing: options.listing, token, after }, fault));\n        if (rows.length === 0)',
        replace:
          'source.list({ listing: options.listing, token, after }, fault));\n        if (rows.length < source.contract.pageSize)',
      },
    ],
    worlds: ['replace'],
    seeds: 40,
    foundBy: 1,
  },
  // ── the cycle ──────────────────────────────────────────────────────────────────────────────────────────────────────
  {
    name: 'an empty page ends the cycle',
    patches: [
      {
        file: 'engine/check-page.js',
        find: 'hasMore: page.hasMore, state',
        replace: 'hasMore: page.hasMore && page.changes.length > 0, state',
      },
    ],
    worlds: ['replace'],
    overrides: { emptyPages: true, rates: { 'empty-page': 0.2 } },
    seeds: 60,
    foundBy: 7,
  },
  {
    name: 'a cycle that exhausts its page budget counts as complete, and sweeps',
    patches: [
      {
        file: ACTIONS,
        find: `const { hasMore, state, partitions } = read.checked;`,
        replace: `if (read.checked.hasMore && findExceededBudget(this.#context) !== null) read.checked.hasMore = false;
        const { hasMore, state, partitions } = read.checked;`,
      },
    ],
    worlds: ['replace'],
    overrides: { pagesMax: 3 },
    seeds: 40,
    foundBy: 8,
  },
  {
    name: 'the checkpoint moves one page ahead of its rows',
    patches: [
      {
        file: 'engine/commit-builder.js',
        find: 'landings: prepared.landings,',
        replace: 'landings: [this.behind ?? [], (this.behind = prepared.landings)][0],',
      },
    ],
    worlds: ['replace', 'delta'],
    seeds: 60,
    foundBy: 7,
  },
  {
    name: 'the page read ahead is kept when its predecessor must be read again',
    patches: [
      { file: ACTIONS, find: 'next?.discard();', replace: '' },
      {
        file: ACTIONS,
        find: `store.headSequence());
        return this.readPageAgain();`,
        replace: `store.headSequence());
        return next === null ? this.readPageAgain() : this.#awaitPage(next);`,
      },
    ],
    worlds: ['owners'],
    overrides: { ...CONTENDED, stamped: false },
    seeds: 150,
    foundBy: 100,
  },
  {
    name: 'a commit whose answer was lost is assumed to have landed',
    patches: [
      {
        file: 'engine/retrying-store.js',
        find: "isResponseLost ||= error.code === 'COMMIT_UNKNOWN';",
        replace:
          "if (error.code === 'COMMIT_UNKNOWN') return { kind: 'landed', version: commit.version, headSequence: 0, counts: noCounts(), paused: false };",
      },
    ],
    worlds: ['replace', 'delta'],
    overrides: { rates: { 'applied-late': 0.1, 'applied-unknown': 0.1 } },
    seeds: 60,
    foundBy: 14,
  },
  // ── the registry ───────────────────────────────────────────────────────────────────────────────────────────────────
  {
    name: 'no fencing: any lease may write',
    patches: [
      {
        file: REGISTRY,
        find: 'entry !== undefined && entry.epoch === lease.epoch && entry.holder === lease.holder ? entry : null',
        replace: 'entry ?? null',
      },
    ],
    worlds: ['replace', 'delta'],
    overrides: { rates: { freeze: 0.03 }, runners: 3, leaseTtlMs: 2_000 },
    seeds: 40,
    foundBy: 2,
  },
  {
    name: 'no fencing and no check of version and page',
    patches: [
      {
        file: REGISTRY,
        find: 'entry !== undefined && entry.epoch === lease.epoch && entry.holder === lease.holder ? entry : null',
        replace: 'entry ?? null',
      },
      {
        file: CHECKPOINT,
        find: "transition.kind === 'set' || isOutsideCycle(transition) || (entry.inflight_cycle === transition.cycle && entry.inflight_page === transition.page - 1)",
        replace: 'true',
      },
    ],
    worlds: ['replace', 'delta'],
    overrides: { rates: { freeze: 0.03 }, runners: 3, leaseTtlMs: 2_000 },
    seeds: 40,
    foundBy: 2,
  },
  {
    name: 'no check of the page: a commit that arrives late lands again',
    patches: [
      {
        file: CHECKPOINT,
        find: "transition.kind === 'set' || isOutsideCycle(transition) || (entry.inflight_cycle === transition.cycle && entry.inflight_page === transition.page - 1)",
        replace: 'true',
      },
    ],
    worlds: ['replace', 'delta'],
    overrides: { rates: { 'applied-late': 0.1 } },
    seeds: 60,
    foundBy: 8,
  },
  {
    name: 'committed moves with every page',
    patches: [
      {
        file: CHECKPOINT,
        find: "case 'continue':\n",
        replace: `case 'continue':
            yield* sql.run('update {registry} set committed = :state where tenant_id = :tenant and sync_id = :sync', { state: transition.state, sync });
`,
      },
    ],
    worlds: ['delta'],
    seeds: 20,
    foundBy: 1,
  },
  // ── landing ────────────────────────────────────────────────────────────────────────────────────────────────────────
  {
    name: 'no version guard: the last to write wins',
    patches: [
      {
        file: RESOLVE,
        find: `if (order < 0 && !isRead)
        return resolveOlderLanding(row, read);
    return order > 0 || isLaterRead(row, read) ? 'update' : 'overlap';`,
        replace: "return 'update';",
      },
    ],
    worlds: ['pair'],
    overrides: CONTENDED,
    seeds: 150,
    foundBy: 62,
  },
  {
    name: 'no comparison of times: the later read wins, though a lagging replica was read',
    patches: [
      {
        file: RESOLVE,
        find: `if (order < 0 && !isRead)
        return resolveOlderLanding(row, read);
    return order > 0 || isLaterRead(row, read) ? 'update' : 'overlap';`,
        replace: "return isLaterRead(row, read) ? 'update' : 'overlap';",
      },
    ],
    worlds: ['pair', 'replace'],
    overrides: BEHIND,
    seeds: 60,
    foundBy: 11,
  },
  {
    // The order of reading covers for the comparison of times here, and vice versa: so both are removed.
    name: 'deleted rows return: any report of a row restores it',
    patches: [
      {
        file: RESOLVE,
        find: `if (order < 0 || (row.status === 'deleted' && order === 0 && landing.upstreamAt === row.upstreamAt))
            return resolveOlderLanding(row, read);`,
        replace: '',
      },
      {
        file: RESOLVE,
        find: "return (order > 0 && row.status === 'deleted') || isLaterRead(row, read) ? 'create' : 'overlap'",
        replace: "return 'create'",
      },
    ],
    worlds: ['pair'],
    overrides: { ...CONTENDED, deletions: 'inline', deleteShare: 0.4 },
    seeds: 200,
    foundBy: 117,
  },
  {
    name: 'a swept row returns with a page that was read before the sweep',
    patches: [{ file: RESOLVE, find: "(order > 0 && row.status === 'deleted')", replace: '(order > 0)' }],
    worlds: ['pair'],
    overrides: SLOW_DELTA,
    seeds: 80,
    foundBy: 4,
  },
  {
    name: 'a repeated row leaves no entry while a listing runs, and an older page of the same time wins',
    patches: [{ file: PLAN, find: 'if (forceLogSince === undefined)', replace: 'if (forceLogSince !== 0)' }],
    worlds: ['pair'],
    overrides: { ...SLOW_LISTING, granularityMs: 1_000 },
    seeds: 100,
    foundBy: 14,
  },
  {
    name: 'overlapping reads are applied in the order of their commits',
    patches: [
      {
        file: RESOLVE,
        find: 'return row.writer === read.writer || row.sequence <= read.readFrom',
        replace: 'return true',
      },
    ],
    worlds: ['owners'],
    overrides: { ...CONTENDED, stamped: false },
    seeds: 150,
    foundBy: 1,
  },
  {
    name: 'records with equal content are identified by their content, not their keys',
    patches: [
      { file: 'stores/sqlite/find-rows.js', find: "|| length(_key) || ':' || _key", replace: '' },
      { file: 'stores/sqlite/find-rows.js', find: '${landing.key.length}:${landing.key}', replace: '' },
    ],
    worlds: ['replace'],
    overrides: { plain: true, stamped: false, records: 10, deleteShare: 0.4, unstorableShare: 0 },
    seeds: 150,
    foundBy: 110,
  },
  {
    name: "the feed's time is the writer's clock",
    patches: [{ file: COMMIT, find: 'Math.max(commit.at, tenant.committed_at + 1)', replace: 'commit.at' }],
    worlds: ['replace', 'delta'],
    overrides: { runnerSkewMs: 5_000, runners: 3 },
    seeds: 60,
    foundBy: 33,
  },
  {
    name: 'the sweep does not move the end of the feed',
    patches: [{ file: COMMIT, find: 'headSequence += swept.count;', replace: '' }],
    worlds: ['replace'],
    seeds: 60,
    foundBy: 2,
  },
  // ── the sweep ──────────────────────────────────────────────────────────────────────────────────────────────────────
  {
    name: 'the sweep deletes rows written since the cycle began',
    patches: [
      {
        file: SWEEP,
        find: 'collectUnseenRanges(session, facts.cycle, Math.min(',
        replace: 'collectUnseenRanges(session, facts.cycle, Math.max(2 ** 50, ',
      },
    ],
    worlds: ['pair', 'replace'],
    seeds: 60,
    foundBy: 4,
  },
  {
    // The entry that a changed time leaves while a listing runs protects the row as well: so both are removed.
    name: 'the sweep deletes rows that another sync has just seen',
    patches: [
      { file: SWEEP, find: 'if (seenSequences.length === 0)', replace: 'if (seenSequences.length >= 0)' },
      { file: PLAN, find: 'if (forceLogSince === undefined)', replace: 'if (forceLogSince !== 0)' },
    ],
    worlds: ['pair'],
    overrides: SLOW_LISTING,
    seeds: 80,
    foundBy: 2,
  },
  {
    name: 'a resumed cycle forgets its sightings',
    patches: [
      {
        file: LEASES,
        find: 'if (unfinished !== null && !request.fresh && unfinished.mode === request.mode) {',
        replace:
          'if (unfinished !== null && !request.fresh && unfinished.mode === request.mode) { yield* deleteSeen(sql, unfinished.cycle);',
      },
    ],
    worlds: ['replace'],
    overrides: { rates: { crash: 0.03 } },
    seeds: 60,
    foundBy: 7,
  },
  {
    name: 'the sightings of an abandoned cycle count for the next',
    patches: [
      {
        file: CHECKPOINT,
        find: `yield* deleteSeen(sql, transition.cycle);
            yield* sql.kernel.writeAudit(entry, { version: entry.version`,
        replace: 'yield* sql.kernel.writeAudit(entry, { version: entry.version',
      },
      {
        file: SWEEP,
        find: "'select ranges from tidemark_seen where tenant_id = ? and cycle_id = ?'",
        replace: "'select ranges from tidemark_seen where tenant_id = ? and cycle_id <= ?'",
      },
    ],
    worlds: ['replace'],
    overrides: { records: 4, deleteShare: 0.4 },
    seeds: 150,
    foundBy: 44,
  },
  {
    name: 'no delete limit: a listing that omits most rows is trusted',
    patches: [{ file: 'stores/kit/plan-landing.js', find: 'if (toDelete === 0)', replace: 'if (toDelete >= 0)' }],
    worlds: ['lie'],
    seeds: 40,
    foundBy: 7,
  },
  {
    name: 'a contested row is never confirmed',
    patches: [{ file: PLAN, find: "row.sequence <= settledSequence ? 'wins' : 'waits'", replace: "'waits'" }],
    worlds: ['replace'],
    overrides: TIMES_GO_BACK,
    seeds: 40,
    foundBy: 7,
  },
  {
    name: 'a contested row wins without a lookup or a second reading',
    patches: [
      {
        file: PLAN,
        find: "if (row.contestedBy === null || row.contestedBy === facts.cycle || !facts.isComplete(row.contestedBy))\n            return 'open';\n        return row.sequence <= settledSequence ? 'wins' : 'waits';",
        replace: "return 'wins';",
      },
    ],
    worlds: ['pair', 'replace'],
    overrides: BEHIND,
    seeds: 60,
    foundBy: 11,
  },
  {
    name: 'the sweep ignores the lag of the source',
    patches: [
      {
        file: SWEEP,
        find: 'Math.min(facts.startSequence, limits.settledSequence ?? facts.startSequence)',
        replace: 'facts.startSequence',
      },
    ],
    worlds: ['pair', 'replace'],
    overrides: BEHIND,
    seeds: 150,
    foundBy: 14,
  },
  {
    name: 'rows that a lookup still finds are swept',
    patches: [
      { file: 'engine/source-lookups.js', find: "if (answer?.type === 'upsert')", replace: 'if (answer === 0)' },
    ],
    worlds: ['lie'],
    overrides: { omission: 'some', lookup: true },
    seeds: 40,
    foundBy: 7,
  },
  {
    name: 'a row that another owner lists is deleted with the first owner',
    patches: [{ file: SWEEP, find: 'if (heir === undefined)', replace: 'if (heir !== null)' }],
    worlds: ['owners'],
    seeds: 60,
    foundBy: 12,
  },
]
