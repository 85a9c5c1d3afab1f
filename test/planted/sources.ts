import { inFile, type PlantedBug } from './planted-bug.ts'

const KEYSET = ['test/strategies/keyset.test.ts']

export const SOURCE_BUGS: readonly PlantedBug[] = [
  ...inFile(
    'src/strategies/streams.ts',
    ['test/strategies/streams.test.ts'],
    [
      ['a stream is skipped', 'names[names.indexOf(reading) + 1]', 'names[names.indexOf(reading) + 2]'],
      ['the cycle ends with the first stream', 'hasMore: next !== undefined,', 'hasMore: page.hasMore,'],
      [
        'the tidemark is that of the last stream',
        'earliestTidemark(names.map((name) => reached[name]))',
        'page.tidemark',
      ],
      [
        'the states of the other streams are lost',
        'states: { ...states, ...(streamState !== undefined',
        'states: { ...(streamState !== undefined',
      ],
      [
        'a missing state is hidden by the old one',
        'if (page.hasMore && page.nextState === undefined) return { ...page, nextState: undefined }\n',
        '',
      ],
      [
        'the tidemarks of the other streams are lost',
        '{ ...tidemarks, ...(typeof page.tidemark',
        '{ ...(typeof page.tidemark',
      ],
      [
        'an unknown stream in a state is read',
        'if (state.reading !== undefined && !names.includes(state.reading)) throw',
        'if (state.reading !== undefined && names.length === 0) throw',
      ],
      [
        'the deletions of an old state are read again from the start',
        '...(deletesCursor !== undefined && { [secondName]: deletesCursor })',
        '...{}',
      ],
      [
        'only the first stream gives the anchor its part',
        'for (const name of names) {',
        'for (const name of names.slice(0, 1)) {',
      ],
    ],
  ),
  ...inFile('src/strategies/keyset.ts', KEYSET, [
    ['the end of a listing is believed at once', 'isClaimed && (bounded || isConfirmed)', 'isClaimed'],
    [
      'rows above the horizon land',
      'instant <= msToInstant(untilMs)) : items',
      'instant <= msToInstant(untilMs + 3_600_000)) : items',
    ],
    [
      'the tidemark includes the moment of the cursor',
      "subtractMicrosecond(requireInstant(last.timestamp, 'The cursor'))",
      "requireInstant(last.timestamp, 'The cursor')",
    ],
  ]),
  ...inFile(
    'src/strategies/frontier.ts',
    ['test/strategies/frontier.test.ts', 'test/strategies/frontier-worlds.test.ts'],
    [
      [
        'the tail is never complete',
        'nextCursor === null ? { tailComplete: true }',
        'nextCursor === null ? { tailComplete: false }',
      ],
      [
        'an expired cursor restarts the pass without end',
        'isWithin(RESTART_INTERVAL_MS, restartedAt, context)',
        'false',
      ],
      [
        'a missing cursor is taken for the end',
        "if (nextCursor !== null && typeof nextCursor !== 'string') throw",
        "if (nextCursor !== null && nextCursor !== undefined && typeof nextCursor !== 'string') throw",
      ],
    ],
  ),
  ...inFile(
    'src/strategies/event-feed.ts',
    ['test/strategies/event-feed.test.ts'],
    [
      [
        'the cursor passes an event that is too young',
        'unsafe === -1 ? events : events.slice(0, unsafe)',
        'unsafe === -1 ? events : events.filter(({ instant }) => instant < msToInstant(untilMs))',
      ],
      [
        'the anchor does not wait until it is old enough',
        'if (youngMs > 1) await context.clock.sleep(youngMs, context.signal)',
        '',
      ],
    ],
  ),
  ...inFile(
    'src/strategies/kit/horizon.ts',
    [...KEYSET, 'test/strategies/event-feed.test.ts'],
    [
      [
        'the clock of the source raises the horizon',
        'Math.min(untilMs, Math.floor(serverMs) - tookMs - lagMs)',
        'Math.floor(serverMs) - tookMs - lagMs',
      ],
      [
        'the time of the answer is not subtracted',
        'Math.floor(serverMs) - tookMs - lagMs',
        'Math.floor(serverMs) - lagMs',
      ],
    ],
  ),
  ...inFile(
    'src/strategies/kit/earliest-tidemark.ts',
    ['test/strategies/streams.test.ts'],
    [
      [
        'the latest tidemark counts',
        'instant < earliest ? instant : earliest',
        'instant > earliest ? instant : earliest',
      ],
      [
        'a stream without a tidemark is ignored',
        'instants.includes(null) ? undefined : (instants as string[])',
        '(instants.filter((instant) => instant !== null) as string[])',
      ],
    ],
  ),
  ...inFile(
    'src/strategies/kit/list-end.ts',
    ['test/strategies/lists.test.ts'],
    [
      ['a short list is swept', 'if (isShort && claimed !== undefined) {', 'if (isShort && total === null) {'],
      [
        'an empty last page is believed at once',
        '(count === 0 || isFull || isShort || isOnly)',
        '(isFull || isShort || isOnly)',
      ],
      ['two ends confirm each other wherever they are', '!isEndConfirmed(claimed, mark)', 'claimed === undefined'],
    ],
  ),
  ...inFile(
    'src/strategies/failover/circuit-breaker.ts',
    ['test/strategies/failover/breaker.test.ts'],
    [
      ['a provider at its limit counts as failing', "if (code === 'RATE_LIMITED') {", "if (code === 'INTERNAL') {"],
      ['one failure too many is needed', 'failures >= FAILURES_TO_OPEN', 'failures > FAILURES_TO_OPEN'],
    ],
  ),
  ...inFile(
    'src/sources/kraken/call-counter.ts',
    ['test/sources/kraken-call-counter.test.ts'],
    [
      ['the counter runs down too fast', 'TIERS[tier].decayPerSecond / 1_000', 'TIERS[tier].decayPerSecond / 500'],
      [
        'a call over the maximum is not held back',
        'Math.ceil((this.#value - this.#max) / this.#decayPerMs)',
        'Math.ceil((this.#value - 2 * this.#max) / this.#decayPerMs)',
      ],
      [
        'a refusal leaves the counter as it is',
        'this.#value = Math.max(this.#decay(now), this.#max + CALL_COST)',
        'this.#value = this.#decay(now)',
      ],
      [
        'a refusal lowers a counter that is higher',
        'Math.max(this.#decay(now), this.#max + CALL_COST)',
        'Math.min(this.#decay(now), this.#max + CALL_COST)',
      ],
      [
        'the wait after a refusal is too short',
        'Math.ceil((this.#max + CALL_COST) / this.#decayPerMs)',
        'Math.ceil(CALL_COST / this.#decayPerMs)',
      ],
      ['a clock that was set back fills the counter', 'Math.max(0, now - this.#updatedAt)', 'now - this.#updatedAt'],
      [
        'the counter falls below zero',
        'return Math.max(0, this.#value - passedMs * this.#decayPerMs)',
        'return this.#value - passedMs * this.#decayPerMs',
      ],
      ['the cost of a call is one', 'const CALL_COST = 2', 'const CALL_COST = 1'],
    ],
  ),
  ...inFile(
    'src/sources/kraken/source.ts',
    ['test/sources/kraken.test.ts', 'test/simulators/kraken-client.test.ts'],
    [
      [
        'a list that changed its length is not read again',
        'pass.count !== null && count !== pass.count',
        'pass.count !== null && count < pass.count',
      ],
      [
        'a nonce is used twice',
        'Math.max(this.#nonce + 1, context.clock.now() * 1_000)',
        'context.clock.now() * 1_000',
      ],
      ['the second of the boundary is skipped', 'Math.floor(startMs / 1_000) - 1', 'Math.ceil(boundaryMs / 1_000) + 1'],
      ['the call counter is ignored', 'if (waitMs > 0) await context.clock.sleep(waitMs, context.signal)', ''],
    ],
  ),
  ...inFile(
    'src/sources/kit/http-client.ts',
    ['test/sources/kit/http-client.test.ts'],
    [
      [
        'refused credentials are renewed without end',
        "outcome.code === 'AUTH_REJECTED' && !renewed",
        "outcome.code === 'AUTH_REJECTED'",
      ],
      [
        'the shorter wait counts',
        'Math.max(headerWaitMs ?? 0, Math.min(bodyWaitMs, retryAfterMaxMs))',
        'Math.min(headerWaitMs ?? 0, Math.min(bodyWaitMs, retryAfterMaxMs))',
      ],
      [
        'a link is shown in an error',
        "isLink ? `${origin.base.pathname.replace(/\\/$/, '')}/…` : url.pathname",
        'url.pathname',
      ],
    ],
  ),
  ...inFile(
    'src/sources/kit/send-request.ts',
    ['test/sources/kit/http-client.test.ts'],
    [
      [
        'a redirect away from the source is followed',
        'if (url === null || !origin.contains(url)) throw',
        'if (url === null) throw',
      ],
      [
        'a post is sent again to where it is redirected',
        "if (method !== 'GET') throw",
        "if (method === 'GET' && label === '') throw",
      ],
    ],
  ),
  ...inFile(
    'src/sources/kit/oauth.ts',
    ['test/sources/kit/oauth.test.ts'],
    [
      [
        'two processes send the same refresh token',
        'stored.claimedUntil > now && stored.claimedUntil <= now + RENEWAL_CLAIM_MS',
        'stored.claimedUntil < now',
      ],
      [
        'a rotated refresh token is forgotten',
        'refreshToken: refreshToken ?? refresh',
        'refreshToken: refresh ?? refreshToken',
      ],
      ['a renewed token that could not be stored is lost', 'await this.#saveUnsaved()\n', ''],
      ['a token is used until it has expired', '- Math.min(EXPIRY_MARGIN_MS, lifetimeMs / 2)', ''],
    ],
  ),
  ...inFile(
    'src/sources/kit/token-endpoint.ts',
    ['test/sources/kit/token-endpoint.test.ts'],
    [
      ['an error with status 200 is a token', 'if (body.ok === false || (', 'if (body.ok === false && ('],
      ['a form is not read', "text.startsWith('{') ? parseObject(text) : parseForm(text)", 'parseObject(text)'],
      ['nested tokens are not found', 'tokensAt === undefined ? body : readPath(body, tokensAt)', 'body'],
      ['the description of an error is printed', '/^[\\w.-]{1,64}$/.test(reason)', 'reason.length > 0'],
      ['a lifetime that is no number never ends', 'seconds > 0 && Number.isFinite(seconds)', '!(seconds <= 0)'],
      ['tokens are not masked', 'registerSecret(tokens.access_token)', ''],
    ],
  ),
  ...inFile(
    'src/http/read-body.ts',
    ['test/http/read-body.test.ts'],
    [
      [
        'brackets in strings count as depth',
        'if (byte === QUOTE) at = this.#skipString(bytes, at)\n      else if',
        'if',
      ],
      ['the deadline of a body is not kept', 'Promise.race([reader.read(), deadline.promise])', 'reader.read()'],
    ],
  ),
  ...inFile(
    'src/sources/kit/postgres/decode-values.ts',
    ['test/sources/sql/postgres.pg.test.ts'],
    [
      ['large integers lose digits', 'Number.isSafeInteger(number) ? number : BigInt(text)', 'number'],
      ['NULL in an array is a text', "value === 'NULL' ? null : element(value)", 'element(value)'],
    ],
  ),
  ...inFile(
    'src/sources/stripe/resources.ts',
    ['test/sources/stripe.test.ts'],
    [['canceled subscriptions are swept', "query: { status: 'all' } },", 'query: {} },']],
  ),
  ...inFile(
    'src/sources/stripe/api.ts',
    ['test/sources/stripe.test.ts'],
    [
      [
        'an empty page that says more follow is accepted',
        'if (body.has_more && body.data.length === 0) throw',
        'if (body.has_more === null) throw',
      ],
    ],
  ),
  ...inFile(
    'src/sources/stripe/api.ts',
    ['test/sources/stripe-bulk.test.ts', 'test/sources/stripe-order.test.ts'],
    [
      [
        'an object and its lists may be of two versions',
        'equalsJson(stringifyJson(before), stringifyJson(after))',
        'true',
        ['test/sources/stripe-nested-cache.test.ts'],
      ],
      [
        'the page before ends the log',
        "if (events.some(({ id }) => id === query['ending_before'])) throw createWrongPageError()",
        '',
      ],
    ],
  ),
  ...inFile(
    'src/sources/stripe/nested-objects.ts',
    ['test/sources/stripe-nested-cache.test.ts'],
    [
      [
        'a page of another version is joined to an object',
        'last !== undefined && !isSameVersion(last, body.data[0])',
        'false',
      ],
      [
        'a list that ends before its count is whole',
        ' && list.total_count !== data.length',
        ' && list.total_count < data.length',
      ],
      ['an expanded item is another version', '(getId(a) ?? a) === (getId(b) ?? b)', 'false'],
      ['a member that is only sent on request makes another version', '!Object.hasOwn(b, name) || ', ''],
    ],
  ),
  ...inFile(
    'src/sources/stripe/delta.ts',
    ['test/sources/stripe-nested-cache.test.ts'],
    [['an event is older than the pages joined before it', 'since - EVENT_LAG_MS / 1_000, atMs', 'since, atMs']],
  ),
  ...inFile(
    'src/sources/stripe/events.ts',
    ['test/sources/stripe.test.ts'],
    [
      ['a canceled subscription is deleted', "new Set(['subscription'])", 'new Set<string>()'],
      ['a deletion within the second of a change loses', "deleted: '999999'", "deleted: '000000'"],
    ],
  ),
  ...inFile(
    'src/sources/stripe/event-scan.ts',
    ['test/sources/stripe.test.ts', 'test/sources/stripe-order.test.ts'],
    [
      [
        'changes of one second land in any order',
        "const isTied = (kind === 'changed' && ",
        "const isTied = (kind === 'deleted' && ",
      ],
      ['an event stamped before its object was made lands as it is', ' || isBeforeCreation(event)', ''],
    ],
  ),
  ...inFile(
    'src/sources/hubspot/source.ts',
    ['test/sources/hubspot.test.ts'],
    [
      [
        'changes of the first millisecond are missed',
        "filter(modified, 'GTE', String(fromMs))",
        "filter(modified, 'GT', String(fromMs))",
      ],
      [
        'a search without a total is believed',
        "if (typeof total !== 'number' || !Number.isSafeInteger(total) || total < 0) throw",
        "if (typeof total === 'number' && total < 0) throw",
      ],
    ],
  ),
  ...inFile(
    'src/sources/hubspot/archive-listing.ts',
    ['test/sources/hubspot.test.ts'],
    [
      ['the archive is read once', 'nowMs - listedMs < intervalMs', 'nowMs - listedMs < intervalMs * 1_000'],
      [
        'the tidemark goes beyond the listing',
        'tidemark: formatIso(untilMs) }',
        'tidemark: formatIso(untilMs + 3_600_000) }',
      ],
    ],
  ),
  ...inFile(
    'src/sources/salesforce/source.ts',
    ['test/sources/salesforce.test.ts'],
    [
      [
        'deleted rows are not read',
        "readBy('SystemModstamp', 'queryAll', [])",
        "readBy('SystemModstamp', 'query', [])",
      ],
      [
        'rows that share the last stamp are skipped',
        "(${stamp} > ${time} OR (${stamp} = ${time} AND Id > '${requireValidId(after.id)}'))",
        '${stamp} > ${time}',
      ],
      [
        'an incomplete answer is believed',
        'if (isDone && !isLocated && records.length < total) {',
        'if (isDone && !isLocated && records.length < 0) {',
      ],
    ],
  ),
  ...inFile(
    'src/sources/servicenow/source.ts',
    ['test/sources/servicenow.test.ts'],
    [
      [
        'the second query lacks the upper bound',
        '`sys_id>${after.id}`, ...common, order)',
        '`sys_id>${after.id}`, order)',
      ],
      ['a page that lost rows is accepted', 'if (!page.isShort && isExpected(page))', 'if (isExpected(page))'],
      ['a page from further on is accepted', 'total - offset === query.left', 'total - offset >= 0'],
      [
        'the list moves with the changes',
        "timestampColumn: 'sys_created_on', columns: listed",
        "timestampColumn: 'sys_updated_on', columns: listed",
      ],
      [
        'partial results are accepted',
        'status < 300 && isObject(body) && isObject(body.error) ?',
        'status > 300 && isObject(body) && isObject(body.error) ?',
      ],
    ],
  ),
  ...inFile(
    'src/sources/airtable/source.ts',
    ['test/sources/airtable.test.ts', 'test/sources/lookup.test.ts'],
    [
      ['a rate limit is asked again at once', 'const RATE_LIMIT_WAIT_MS = 30_000', 'const RATE_LIMIT_WAIT_MS = 1'],
      ['an expired iteration fails for ever', 'offset === undefined ? {} : { cursorRefusals: [422] }', '{}'],
    ],
  ),
  ...inFile(
    'src/sources/bookmarks/source.ts',
    ['test/sources/bookmarks.test.ts'],
    [
      [
        'withheld bookmarks are swept',
        "if (sweeps && context.cycle.mode === 'replace' && !(Array.isArray(errors) && errors.length === 0)) throw",
        "if (sweeps && context.cycle.mode === 'replace' && !Array.isArray(errors)) throw",
      ],
      [
        'bookmarks beyond the limit of the list are swept',
        'token === null && page >= PAGES_LISTED_MAX',
        'token === null && page > PAGES_LISTED_MAX * 2',
      ],
    ],
  ),
  ...inFile(
    'src/sources/linear/source.ts',
    ['test/sources/linear.test.ts', 'test/sources/lookup.test.ts'],
    [
      ['the budget that renews first decides the wait', 'Math.max(...waits)', 'Math.min(...waits)'],
      [
        'a missing part is taken for an empty list',
        'if (!isObject(connection) || !Array.isArray(connection.nodes) || !connection.nodes.every(isObject) ||',
        'if (!isObject(connection) || !Array.isArray(connection.nodes) ||',
      ],
    ],
  ),
  ...inFile(
    'src/sources/github/source.ts',
    ['test/sources/github.test.ts'],
    [
      [
        'a repository that was left out is taken for deleted',
        'if (!gone.has(`p${n}`)) throw',
        'if (gone.size < 0) throw',
      ],
      ['any error beside the data is ignored', "error.type !== 'NOT_FOUND' || ", ''],
    ],
  ),
  ...inFile(
    'src/sources/github-stars/overlapping-pages.ts',
    ['test/sources/github-stars.test.ts'],
    [
      ['pages do not overlap', 'Math.floor((position - 1) / perPage) + 1', 'Math.floor(position / perPage) + 1'],
      ['a page without overlap is accepted', 'first !== undefined && first.starredAt > cursor.starredAt', 'true'],
    ],
  ),
  ...inFile(
    'src/sources/evm/reorg-repair.ts',
    ['test/sources/evm/reorg.test.ts'],
    [
      [
        'transfers of a replaced block stay',
        "changes: missing.map((key): Change => ({ type: 'delete', key }))",
        "changes: missing.slice(1).map((key): Change => ({ type: 'delete', key }))",
      ],
      [
        'a key that came back is deleted',
        'const missing = suspects.keys.filter((key) => !present.has(key))',
        'const missing = suspects.keys',
      ],
      ['the search goes on after the common block', 'from: toBlockCursor(block + 1)', 'from: toBlockCursor(block + 2)'],
    ],
  ),
  ...inFile(
    'src/sources/files/state.ts',
    ['test/sources/files/files.test.ts', 'test/sources/files/cycles.test.ts'],
    [
      ['a state may name a file outside the folder', "path.split('/').includes('..')", 'false'],
      ['a manifest that is cut off is read', '|| !isCount(rows)) throw', '|| rows < 0) throw'],
    ],
  ),
  ...inFile(
    'src/sources/kafka/log-page.ts',
    ['test/sources/kafka/log.test.ts', 'test/sources/kafka/simulated.test.ts'],
    [
      [
        'a recreated topic is read from the old offset',
        'marked === undefined || marked.timestamp === this.#marks[partition]',
        'marked === undefined || marked !== null',
      ],
      ['messages before the position land again', 'if (offset < first) continue', ''],
      ['a page goes beyond the end of the cycle', 'offset >= end || this.isFull', 'this.isFull'],
    ],
  ),
  ...inFile(
    'src/sources/postgres-cdc/replication-slot.ts',
    ['test/sources/postgres-cdc/following.pg.test.ts'],
    [
      ['a slot that went further is read on', 'if (confirmed > since) throw', 'if (confirmed < 0n) throw'],
      ['a table that is not published is followed', 'if (missing !== undefined) throw', 'if (missing === null) throw'],
    ],
  ),
  ...inFile(
    'src/sources/postgres-cdc/change-page.ts',
    ['test/sources/postgres-cdc/following.pg.test.ts'],
    [
      ['a changed key leaves the old row', 'if (formatKey(oldKey) !== formatKey(key)) this.#delete(table, oldKey)', ''],
      ['a value that was not sent becomes null', 'else missing.push(name)', 'else record[name] = null'],
    ],
  ),
  ...inFile(
    'src/strategies/kit/timestamp-paging.ts',
    ['test/sources/rest/following.test.ts', 'test/sources/rest/listing.test.ts'],
    [
      ['a page out of order is accepted', 'if (instant < previous) throw', "if (instant === '') throw"],
      [
        'a full page of one timestamp is skipped',
        'if (!hasMoved && ordered.length >= pageSize && safe.length === ordered.length) {',
        'if (!hasMoved && ordered.length < 0) {',
      ],
    ],
  ),
  ...inFile(
    'src/strategies/kit/time-window.ts',
    ['test/sources/rest/following.test.ts'],
    [
      ['an empty window is left', 'isFound || (since !== undefined &&', 'true || (since !== undefined &&'],
      [
        'an empty last page is believed at once',
        'isUnproven && !isConfirmed',
        'changes.length > 0 && isUnproven && !isConfirmed',
      ],
    ],
  ),
  ...inFile(
    'src/sources/odata/cursor-delta.ts',
    ['test/sources/odata/following.test.ts', 'test/sources/odata/requests.test.ts'],
    [
      [
        'a short page is taken for the end',
        'end: rows.length === 0 && nextLink === null',
        'end: rows.length < entitySet.limit && nextLink === null',
      ],
      ['a day that is not over is passed', "isDay ? 'lt' : 'le'", "'le'"],
    ],
  ),
  ...inFile(
    'src/sources/odata/delta-links.ts',
    ['test/sources/odata/tracked.test.ts'],
    [
      [
        'the first delta after a backfill lacks its deletions',
        'if (isAnchored) return { changes, next: next === null ? resume',
        'if (isAnchored) return { changes, resume, next: next === null ? null',
      ],
      [
        'a partial entity lands as it is',
        'if (isComplete) return toChange(row, plan)',
        'if (row !== null) return toChange(row, plan)',
      ],
      [
        'a refused link fails instead of ordering a backfill',
        'const EXPIRED_LINK_STATUSES = [400, 404, 410]',
        'const EXPIRED_LINK_STATUSES = [400, 404]',
      ],
    ],
  ),
  ...inFile(
    'src/sources/singer/record.ts',
    ['test/sources/singer/singer.test.ts'],
    [
      ['a deleted record lands', 'if (deletedAt !== null) return', "if (deletedAt === '') return"],
      [
        'two keys of several parts read the same',
        "parts.includes('') ? '' : JSON.stringify(parts)",
        "parts.includes('') ? '' : parts.join('-')",
      ],
    ],
  ),
  ...inFile(
    'src/sources/singer/source.ts',
    ['test/sources/singer/singer.test.ts'],
    [
      [
        'a listing with a broken line is swept',
        'if (this.#isListing) throw new SyncError',
        'if (this.#isListing && this.#invalidLines > 0) throw new SyncError',
      ],
      ['a tap that failed counts as complete', 'if (code === 0) {', 'if (code !== null) {'],
    ],
  ),
  ...inFile(
    'src/sources/sql/statements.ts',
    ['test/sources/sql/statements.test.ts', 'test/sources/sql/sqlite.test.ts'],
    [
      ['rows with the value of the bound are skipped', 'next === undefined ? bound : strict', 'strict'],
      [
        'the upper bound is missing',
        'const conditions = between({ lower, upper })',
        'const conditions = between({ lower, upper: null })',
      ],
    ],
  ),
  ...inFile(
    'src/sources/sql/table-plan.ts',
    ['test/sources/sql/sqlite.test.ts'],
    [
      [
        'the key does not break ties of the cursor',
        'cursor.isUnique ? [cursor] : [cursor, ...key',
        'true ? [cursor] : [cursor, ...key',
      ],
      ['a row that is marked as deleted lands', 'if (isDeleted) return', 'if (isDeleted && at === 0) return'],
    ],
  ),
]
