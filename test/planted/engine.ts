import { inFile, type PlantedBug } from './planted-bug.ts'

const PAUSES = ['test/engine/account-pauses.test.ts']
const LOOKUPS = ['test/engine/repair.test.ts']
const CYCLE = [
  'test/engine/cycle.test.ts',
  'test/engine/replace.test.ts',
  'test/engine/pair.test.ts',
  'test/engine/landing.test.ts',
]
const TIDEMARK = ['test/engine/tidemark.test.ts']

export const ENGINE_BUGS: readonly PlantedBug[] = [
  ...inFile(
    'src/engine/page-reader.ts',
    ['test/engine/retries.test.ts'],
    [
      [
        'the lease is checked before the pauses are read, and not after',
        'await this.#pauses.check(origin, signal)\n    // After every wait: a process may be suspended in one, also while it reads the pauses from the store.\n    if (this.#heartbeat.isExpired()) {',
        'if (this.#heartbeat.isExpired()) {',
      ],
      ['an expired lease is not renewed before a request', 'if (this.#heartbeat.isExpired()) {', 'if (false) {'],
    ],
    'XA11',
  ),
  ...inFile(
    'src/engine/page-preparer.ts',
    ['test/engine/serialized-upserts.test.ts'],
    [
      [
        'only the first text of a shape is checked',
        'isFitting === false || (isFitting === true && shape.isTrusted === true)',
        'isFitting !== undefined',
      ],
      [
        'shapes beyond the limit are not checked',
        'isFitting === undefined && shape.isTrusted === true && known.size >= TRUSTED_SHAPES_CHECKED_MAX',
        'isFitting === undefined && known.size >= TRUSTED_SHAPES_CHECKED_MAX',
      ],
      ['a text with spaces is stored as it is', ' && serializeRecord(record) === serialized.text', ''],
    ],
  ),
  ...inFile(
    'src/values/json.ts',
    ['test/values/json.test.ts'],
    [
      ['a negative zero is written as zero', "if (Object.is(value, -0)) return '-0'", ''],
      ['a negative zero in an object is not found', 'Object.values(value).some(hasNegativeZero)', 'false'],
      ['a zero at the start of a list is not found', " || text.includes('[0')", ''],
      ['zero equals negative zero', 'if (Object.is(a, b)) return true', 'if (a === b) return true'],
    ],
  ),
  ...inFile('src/engine/account-pauses.ts', PAUSES, [
    ['a shorter pause replaces a longer one', 'Math.max(ms, this.#localPauseMs(origin))', 'ms'],
    ['the pause of one origin stops the others', "pause.origin === '' || pause.origin === origin", 'true'],
    [
      'a pause without an origin is ignored',
      "pause.origin === '' || pause.origin === origin",
      'pause.origin === origin',
    ],
    [
      'the pause of another pacer counts',
      "pacer === '' || this.#pacers.length === 0 || this.#pacers.includes(pacer)",
      'true',
    ],
    ['a sync without a pacer ignores the pauses of pacers', ' || this.#pacers.length === 0', ''],
    [
      'a pause that the process keeps back is noted again',
      ' || error instanceof PauseError) return\n    const ms',
      ') return\n    const ms',
    ],
    ['pauses of the process itself are forgotten', '[...stored, ...local]', '[...stored]'],
    ['pauses of other processes are not read', '[...stored, ...local]', '[...local]'],
    [
      'the shortest pause is kept instead of the longest',
      'pause.ms > longest.ms ? pause : longest',
      'pause.ms > longest.ms ? longest : pause',
    ],
    ['the announcement of an answer is ignored', 'if (ms !== undefined) await this.#record(origin, ms)', ''],
    [
      'a failed read of the store is remembered',
      'pauses.catch(() => (this.#cachedPauses = null))',
      'pauses.catch(() => {})',
    ],
    ['the answer of the store is used for ever', 'at - this.#cachedPauses.at < CACHE_TTL_MS', 'true'],
    [
      'a clock that was set back makes an own pause longer',
      'Math.min(until - this.#clock.now(), until - notedAt)',
      'until - this.#clock.now()',
    ],
    ['a long pause is slept through', 'ms > INLINE_WAIT_MAX_MS', 'ms > 500_000_000'],
    [
      'a failure to store the pause fails the page',
      'classifyError(thrown).code })',
      'classifyError(thrown).code }); throw thrown',
    ],
    ['a pause that the store could not take is not stored later', 'this.#unstoredOrigins.add(origin)', ''],
    ['a store that stays away is asked for ever', ' && attempt <= FLUSH_ATTEMPTS_MAX', ''],
    [
      'a pause that is over by the end of the cycle is stored',
      'if (ms <= 0) this.#unstoredOrigins.delete(origin)',
      'if (false) {}',
    ],
    ['an own pause never ends', 'Math.min(until - this.#clock.now(), until - notedAt)', 'until - notedAt'],
    [
      'the pause of another worker counts',
      'this.#store.pauses({ worker: this.#worker, at })',
      "this.#store.pauses({ worker: 'crm', at })",
    ],
  ]),
  ...inFile('src/engine/cycle.ts', PAUSES, [
    [
      'a pause that the store could not take is not stored at the end of the cycle',
      'await resources.pauses.flush(context.options.ports.random)',
      '',
    ],
  ]),
  ...inFile('src/engine/source-lookups.ts', LOOKUPS, [
    [
      'a lookup that finds nothing refutes a shown deletion',
      "(answer?.type ?? 'delete') === listed.type",
      'answer?.type === listed.type',
    ],
    ['an answer without a time decides', 'answer.upstreamAt === null ? undefined : ', ''],
    ['an answer of another version confirms', 'answer.upstreamAt === listed.upstreamAt', 'true'],
    [
      'contested keys are asked for without a bound',
      'at < CONTESTED_LOOKUPS_MAX || hasReadTime(listed.get(key))',
      'true',
    ],
    [
      'a failed lookup refutes the row',
      'if (answer === undefined) break',
      'if (answer === undefined) { refuted.push(key); continue }',
    ],
    [
      'a failed lookup is taken for an absence',
      "if (code === 'CANCELLED' || code === 'LEASE_LOST') throw error\n        throw",
      "if (code === 'CANCELLED' || code === 'LEASE_LOST') throw error\n        if (code !== 'INTERNAL') return null\n        throw",
    ],
    [
      'a record that cannot be stored counts as absent',
      'if (quarantined.length > 0) return {',
      'if (quarantined.length > 1) return {',
    ],
    ['a present row does not stop the sweep', "if (answer?.type === 'upsert') return key", ''],
    ['only the sample of absent keys is asked for', ', ...keys.filter((_, at) => at % step !== 0)]', ']'],
  ]),
  ...inFile('src/engine/cycle-tidemark.ts', TIDEMARK, [
    [
      'a listing moves the tidemark page by page',
      "if (mode === 'replace' || this.isIncomplete)",
      'if (this.isIncomplete)',
    ],
    [
      'the tidemark of a listing goes beyond its start',
      'earlier(msToInstant(instantToMs(page.stated) - aheadMs), since)',
      'msToInstant(instantToMs(page.stated) - aheadMs)',
    ],
    [
      'the clock difference is added instead of subtracted',
      'instantToMs(page.stated) - aheadMs',
      'instantToMs(page.stated) + aheadMs',
    ],
    [
      "the source's clock does not bound the start",
      'Math.min(startedAtMs, this.#bound.readSinceMs ?? Infinity)',
      'startedAtMs',
    ],
    ['the bound of the first runner is lost', 'parseBound(inflight?.guardState ?? null)', 'parseBound(null)'],
    ['a tidemark that was denied is derived from the rows', 'if (page.stated === null) return null', ''],
    ['an unstated tidemark goes beyond the start of the cycle', 'earlier(candidate, since)', 'candidate'],
    [
      'an unstated tidemark goes back',
      'return later(this.#committed, candidate === null',
      'return (candidate === null',
    ],
    ['a delta claims completeness before its backfill', 'backfill.lastSuccessAt === null || ', ''],
    ['a delta claims completeness while a backfill is needed', ' || backfill.backfillNeeded !== null', ''],
    ['a new delta does not wait for a backfill under way', ' && backfill.inflight === null', ''],
    ['a new delta does not wait for an ordered backfill', 'backfill.triggeredAt === null && ', ''],
    ['the earlier of two times wins', 'return a > b && isInstant(a)', 'return a < b && isInstant(a)'],
  ]),
  ...inFile('src/engine/cycle.ts', CYCLE, [
    ['a paused sync runs', 'if (checkpoint.paused) {', 'if (checkpoint.paused && plan.sync === null) {'],
  ]),
  ...inFile(
    'src/engine/cycle-machine.ts',
    ['test/engine/cycle-machine.test.ts'],
    [
      [
        'a page that overlaps is committed again',
        "overlap: { action: 'readAfterOverlap', state: 'reading' }",
        "overlap: { action: 'commitAgain', state: 'committing' }",
      ],
      [
        'an impossible event ends the cycle',
        'if (step === impossible) throw',
        'if (step === impossible) return end\n  throw',
      ],
    ],
  ),
  ...inFile('src/engine/cycle-actions.ts', CYCLE, [
    [
      'a rejected cursor restarts the cycle without end',
      ' || this.#restarted) throw error',
      ') throw error',
      ['test/engine/retries.test.ts', 'test/engine/guards.test.ts', 'test/engine/cycle.test.ts'],
    ],
    ['the cycle goes on after a pause was ordered', "(landed.paused ? 'paused' : null)", 'null'],
  ]),
  ...inFile('src/engine/run-budget.ts', CYCLE, [
    ['the page budget is one too many', 'counters.pages + 1 >= pagesMax', 'counters.pages >= pagesMax'],
  ]),
  ...inFile('src/engine/open-cycle.ts', CYCLE, [
    [
      'a changed scope does not tighten the sweep',
      'known !== scope && (known !== null || lastSuccessAt !== null)',
      'false',
    ],
    [
      'rows younger than the lag are swept',
      'this.settledSequence = Math.min(startSequence, sequence)',
      'this.settledSequence = startSequence',
      ['test/engine/repair.test.ts'],
    ],
  ]),
  ...inFile(
    'src/engine/page-transition.ts',
    ['test/engine/replace.test.ts'],
    [
      [
        'an incomplete cycle sweeps',
        'const isSweepable = !open.applyAnswers(read).isIncomplete || context.options.allowDeletes === true',
        'open.applyAnswers(read)\n  const isSweepable = true',
      ],
    ],
  ),
  ...inFile(
    'src/engine/open-cycle.ts',
    ['test/engine/replace.test.ts'],
    [['an incomplete page is not remembered', 'checked.isIncomplete ? read.markIncomplete() : read', 'read']],
  ),
  ...inFile('src/engine/page-transition.ts', CYCLE, [
    [
      'the state of a listing is committed',
      'state: replace ? null : (checked.state ?? requestState)',
      'state: checked.state ?? requestState',
    ],
    ['a last page without a state loses the previous one', '(checked.state ?? requestState)', 'checked.state'],
  ]),
  ...inFile(
    'src/engine/commit-builder.ts',
    ['test/engine/pair.test.ts'],
    [
      [
        'deltas of a pair are not logged during a backfill',
        'return { forceLogSince: isTimeless ? Math.max(listingStart, request.readAtSequence) : listingStart }',
        'return {}',
      ],
    ],
  ),
  ...inFile('src/engine/sweep.ts', LOOKUPS, [
    [
      'lookups of absences are skipped',
      '...(database !== null && lookupsMax > 0 && { confirmAbsent: { database, limit: lookupsMax } })',
      '...{}',
    ],
  ]),
  ...inFile(
    'src/engine/lease-heartbeat.ts',
    ['test/engine/keep-lease.test.ts'],
    [
      [
        'a lost lease does not stop the cycle',
        'if (renewed === false) abortCycle(',
        'if (renewed === false && ttlMs < 0) abortCycle(',
      ],
      ['a lease that could not be renewed is never over', 'clock.now() - renewedAt >= ttlMs', 'false'],
    ],
  ),
  ...inFile(
    'src/engine/loop-guard.ts',
    ['test/engine/guards.test.ts'],
    [
      ['one empty page too many is allowed', 'emptyPages >= this.#emptyPagesMax', 'emptyPages > this.#emptyPagesMax'],
      ['a long circle is not found', 'stateDigest === anchor || this.#visited.has(stateDigest)', 'false'],
      [
        'a quarantined page counts as empty',
        'landings.length === 0 && quarantined.length === 0',
        'landings.length === 0',
      ],
    ],
  ),
  ...inFile(
    'src/engine/pacer.ts',
    ['test/engine/pacer.test.ts'],
    [
      [
        'slots are spaced too closely',
        'Math.ceil(plan.intervalMs / plan.allowedRequests)',
        'Math.floor(plan.intervalMs / (plan.allowedRequests + 1))',
      ],
      ['a passed slot is used', 'this.#spareSlots.filter((slot) => slot >= now)', 'this.#spareSlots'],
    ],
  ),
  ...inFile(
    'src/engine/retry.ts',
    ['test/engine/retries.test.ts', 'test/engine/account-pauses.test.ts'],
    [
      [
        'the wait that the source asks for is cut short',
        'Math.max(waitHintMs(error), Math.round(backoff * (0.5',
        'Math.min(waitHintMs(error), Math.round(backoff * (0.5',
      ],
      ['a wait hint is not bounded', 'Math.min(ms, HINT_MAX_MS)', 'ms'],
    ],
  ),
  ...inFile(
    'src/engine/replay-quarantine.ts',
    ['test/engine/replay.test.ts'],
    [
      [
        'a replay overwrites what another sync wrote later',
        'if (newest.committedAt < entry.at) return false',
        'return false',
      ],
      [
        'a replay of a key without a row forgets the tombstone',
        'await this.#land(unknown, [], readAtSequence - 1)',
        'await this.#land(unknown, [], readAtSequence + 1_000_000)',
      ],
      ['a record that a later listing left out is replayed', 'entry.cycle < this.#lastListing || ', ''],
    ],
  ),
  ...inFile(
    'src/engine/check-page.ts',
    ['test/engine/state.test.ts', 'test/engine/guards.test.ts', 'test/engine/cycle.test.ts'],
    [
      [
        'more pages without a state are accepted',
        'if (page.hasMore && page.nextState === undefined) {',
        'if (page.hasMore && page.nextState === null) {',
      ],
      [
        'unreadable state starts over',
        "throw new SyncError('STATE_UNREADABLE'",
        "if (sync !== '') return undefined\n    throw new SyncError('STATE_UNREADABLE'",
      ],
    ],
  ),
]
