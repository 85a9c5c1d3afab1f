import { inFile, type PlantedBug } from './planted-bug.ts'

const FEED = ['test/feed/place.test.ts', 'test/server/feed.test.ts']
const DELIVERY = ['test/webhooks/round.test.ts', 'test/webhooks/delivery.test.ts']
const VERIFY = ['test/webhooks/verify.test.ts']

export const SERVICE_BUGS: readonly PlantedBug[] = [
  ...inFile('src/feed/feed-cursor.ts', FEED, [
    ['a cursor of a store that was set back is accepted', 'page.afterCommittedAt !== committedAt)', 'false)'],
    [
      'a compacted log is read on',
      'sequence < page.floor && cursor.floor !== page.floor',
      'sequence < page.floor && cursor.floor < 0',
    ],
    [
      'an expired cursor is accepted',
      'now - decoded.issuedAt > CURSOR_LIFE_MS',
      'now - decoded.issuedAt > 2 * CURSOR_LIFE_MS',
    ],
    [
      'a cursor of another filter is accepted',
      'if (databases === undefined || JSON.stringify(toCursorDatabases(databases)) === JSON.stringify(cursor.databases)) return',
      'return',
    ],
  ]),
  ...inFile('src/feed/read-feed-page.ts', FEED, [
    [
      'the last page says that there is more',
      'const hasMore = last !== null || page.scannedSequence < page.headSequence',
      'const hasMore = last !== null || page.scannedSequence <= page.headSequence',
    ],
    [
      'the cursor skips the entry after a full page',
      'const sequence = last?.sequence ?? page.scannedSequence',
      'const sequence = page.scannedSequence',
    ],
    ['a time before the floor is accepted', 'since <= page.floorCommittedAt', 'since < 0'],
    ['a fraction of a millisecond is rounded down', "(canonical.slice(23, 26) === '000' ? 0 : 1)", '0'],
  ]),
  ...inFile('src/feed/cursor-cipher.ts', FEED, [
    [
      'a forged cursor is opened',
      'if (timingSafeEqual(computeTag(sign, content), tag)) found = content',
      'found = content',
    ],
  ]),
  ...inFile(
    'src/server/api-key.ts',
    ['test/server/keys.test.ts', 'test/server/authorization.test.ts'],
    [
      ['an ended key is valid', 'key.endsAt === null || key.endsAt > now', 'true'],
      [
        'a scope to read one database reads all',
        "scope.endsWith(':read') && scopes.includes('*:read')",
        "scope.endsWith(':read') && scopes.some((own) => own.endsWith(':read'))",
      ],
      [
        'the right to read syncs or connections reads the database of that name',
        "database === 'sync' || database === 'connections' ? '*:read' : ",
        '',
      ],
      [
        'a key for every database reads connections',
        "if (scope === 'connections:read') return scopes.includes('connections:write')",
        '',
      ],
      [
        'writing syncs is allowed to everyone who reads them',
        "if (scope === 'sync:read') return scopes.includes('sync:write')",
        "if (scope.startsWith('sync:')) return scopes.some((own) => own.startsWith('sync:'))",
      ],
    ],
  ),
  ...inFile(
    'src/server/authenticator.ts',
    ['test/server/revocation.test.ts', 'test/server/keys.test.ts', 'test/server/walls.test.ts'],
    [
      ['a key reads the first tenant', 'this.#storeOf(key.tenant), rateLimit', 'this.#store, allowance'],
      [
        'wrong keys are never slowed down',
        'if (failed.remaining < 0) throw',
        'if (failed.remaining < -1_000_000) throw',
      ],
      ['a long answer outlives its key', 'if (!this.#mayRead(key, scope)) ended.abort()', ''],
      ['a revoked key is remembered for long', 'until: now + KEY_CACHE_MS', 'until: now + KEY_CACHE_MS * 3_600'],
    ],
  ),
  ...inFile(
    'src/server/rate-limiter.ts',
    ['test/server/fleet.test.ts', 'test/server/keys.test.ts'],
    [['requests of other processes do not count', 'limit - count.local - count.remote', 'limit - count.local']],
  ),
  ...inFile(
    'src/server/page-cache.ts',
    ['test/server/hot-pages.test.ts', 'test/server/walls.test.ts'],
    [
      [
        'a page of another tenant is served',
        'const page = this.#pages.get(`${tenant} ${url}`)\n    return',
        'const page = [...this.#pages].find(([key]) => key.endsWith(` ${url}`))?.[1]\n    return',
      ],
    ],
  ),
  ...inFile(
    'src/server/consumer-routes.ts',
    ['test/server/consumer.test.ts', 'test/server/authorization.test.ts'],
    [
      ['every key sees the lag of all consumers', 'all || owner === caller.name', 'all || owner !== null'],
      [
        'a consumer may have a checkpoint in data that it may not read',
        "isList ? databaseReadScope(resource) : 'changes:read'",
        "'changes:read'",
      ],
    ],
  ),
  ...inFile(
    'src/server/loopback.ts',
    ['test/server/loopback.test.ts'],
    [
      [
        'a request through a proxy counts as local',
        `if (FORWARDING_HEADERS.some((header) => headers[header] !== undefined)) return false
`,
        '',
      ],
      ['another name that leads here is local', 'if (!isLoopback(name)) return false', "if (name === '') return false"],
    ],
  ),
  ...inFile(
    'src/server/console/reset-sync.ts',
    ['test/console/api.test.ts'],
    [
      ['a reset without a reason is accepted', "if (reason.trim() === '') throw", 'if (reason === null) throw'],
      [
        'a reset ignores the version that was seen',
        'owner, version: expectedVersion, needsBackfill }',
        'owner, version: before.version, needsBackfill }',
      ],
    ],
  ),
  ...inFile('src/webhooks/delivery-round.ts', DELIVERY, [
    [
      'a webhook whose message waits is asked for without rest',
      'this.#retain(rest, failed ? now : AFTER_PREDECESSOR)',
      'this.#retain(rest, now)',
    ],
    ['a gap in the log goes unnoticed', 'webhook.sequence < page.floor && webhook.floor !== page.floor', 'false'],
    [
      'a message is given up while nothing gets through',
      'const failed = isExhausted && !noneSucceeded',
      'const failed = isExhausted',
    ],
    ['one attempt too few is made', 'RETRY_DELAYS_MS.length + 1', 'RETRY_DELAYS_MS.length'],
    [
      'the wait that the receiver asks for is ignored',
      'outcome.retryAfterMs === null ? 0 : Math.min(outcome.retryAfterMs, RETRY_AFTER_MAX_MS))',
      '0)',
    ],
  ]),
  ...inFile('src/webhooks/deliverer.ts', DELIVERY, [
    [
      'a lost claim goes on delivering',
      'if (isRenewed === false || clock.now() - renewedAt >= ttlMs) return aborting.abort',
      'if (isRenewed === false && clock.now() < 0) return aborting.abort',
      ['test/webhooks/claim.test.ts', 'test/webhooks/delivery.test.ts'],
    ],
    [
      'actions that are not wanted are delivered',
      'webhook.actions === null || webhook.actions.includes(action)',
      'true',
    ],
  ]),
  ...inFile(
    'src/webhooks/send.ts',
    ['test/webhooks/sender.test.ts'],
    [
      ['the query of the receiver is shown', "rest.replaceAll(part, '…'), text)", 'rest, text)'],
      ['a redirect counts as delivered', 'status >= 200 && status < 300', 'status >= 200 && status < 400'],
    ],
  ),
  ...inFile(
    'src/webhooks/check-url.ts',
    ['test/webhooks/sender.test.ts', 'test/server/webhook-control.test.ts'],
    [
      [
        'one public address of a name is enough',
        '!addresses.every(({ address }) => isPublicAddress(address))',
        '!addresses.some(({ address }) => isPublicAddress(address))',
      ],
      [
        'credentials in a URL are accepted',
        "url.username !== '' || url.password !== ''",
        "url.username === '' && url.password !== ''",
      ],
      [
        'plain http is accepted',
        "url.protocol === 'http:' && !allow.includes('http')",
        "url.protocol === 'ftp:' && !allow.includes('http')",
      ],
    ],
  ),
  ...inFile(
    'src/webhooks/inbound-webhooks.ts',
    ['test/webhooks/inbound.test.ts'],
    [
      [
        'a failed message is not taken again',
        'await store.settleInbound(message, { done: false, at: clock.now() })',
        'await store.settleInbound(message, { done: true, at: clock.now() })',
      ],
      ['any sync can be triggered', 'if (!webhook.syncs.includes(trigger)) throw', 'if (trigger === null) throw'],
      ['credentials of the sender are kept with the message', '.filter(([name]) => !DROPPED_HEADERS.has(name))', ''],
      [
        'a tenant that does not exist gets another response',
        "return isRefusal(error) || isTenantAddressed ? 'refused' : 'failed'",
        "return isRefusal(error) ? 'refused' : 'failed'",
      ],
    ],
  ),
  ...inFile('src/webhooks/verify/verify.ts', VERIFY, [
    ['a message of the future is accepted', 'Math.abs(now - ms) > TOLERANCE_MS', 'now - ms > TOLERANCE_MS'],
    ['a shorter signature is accepted', 'a.length === b.length && timingSafeEqual(a, b)', 'expected.startsWith(given)'],
  ]),
  ...inFile('src/webhooks/verify/standard.ts', VERIFY, [
    ['the parts of a message can be shifted', "id.includes('.') || ", ''],
  ]),
  ...inFile('src/webhooks/verify/github.ts', VERIFY, [
    [
      'a message played again under another id is new',
      "hash('sha256', Buffer.from(delivery.rawBody), 'hex')",
      "requireHeader(delivery, 'x-github-delivery')",
    ],
  ]),
  ...inFile(
    'src/runner/due.ts',
    ['test/runner/due.test.ts'],
    [
      [
        'a failed sync runs before its wait is over',
        "return { kind: 'at', at: Math.max(slot, earliest)",
        "return { kind: 'at', at: Math.min(slot, earliest)",
      ],
      ['a paused sync is due', "if (checkpoint.paused) return { kind: 'never', why: 'paused' }\n", ''],
      [
        'a trigger before the failure ignores the wait',
        'isAfterFailure ? requestedAt : Math.max(requestedAt, earliest)',
        'requestedAt',
      ],
      [
        'refused credentials are asked with again',
        `if (isScheduleStopped(checkpoint)) return { kind: 'never', why: 'stopped' }
`,
        '',
      ],
    ],
  ),
  ...inFile(
    'src/runner/health.ts',
    ['test/runner/health.test.ts'],
    [['the third failure is a warning', 'failures >= ERROR_AFTER_FAILURES', 'failures > ERROR_AFTER_FAILURES']],
  ),
  ...inFile(
    'src/runner/once-per-slot-store.ts',
    ['test/runner/fleet.test.ts', 'test/runner/runner.test.ts', 'test/runner/describe-runner.test.ts'],
    [
      [
        'one slot runs once per process',
        "result.kind === 'held' || !isSameSync || fingerprintCheckpoint(result.checkpoint) === fingerprint",
        'true',
      ],
    ],
  ),
  ...inFile(
    'src/runner/absence.ts',
    ['test/runner/absence.test.ts'],
    [
      [
        'a swept row counts as deleted by the source',
        "facts.lastEntryMode === 'replace'",
        "facts.lastEntryMode === 'incremental'",
      ],
      [
        'a listing that began before the change should have brought it',
        'lastComplete.startedAt > instantToMs(changed)',
        'lastComplete.startedAt < instantToMs(changed)',
      ],
    ],
  ),
  ...inFile(
    'src/runner/restate/turn-runner.ts',
    ['test/runner/restate/turns.test.ts'],
    [
      ['a long wait is sat out', 'progress.ms <= WAIT_MAX_MS', 'progress.ms <= WAIT_MAX_MS * 1_000'],
      ['the attempts of a page are counted from zero in each slice', 'Math.max(0, retriesMax - tried())', 'retriesMax'],
    ],
  ),
  ...inFile(
    'src/config/schedule.ts',
    ['test/config/schedule.test.ts'],
    [
      ['a clock that was ahead silences the sync', 'Math.min(facts.lastStartedAt, facts.now)', 'facts.lastStartedAt'],
      ['a cron slot at the first moment is missed', '(facts.since ?? facts.now) - 1', '(facts.since ?? facts.now)'],
    ],
  ),
  ...inFile(
    'src/config/load-key-ring.ts',
    ['test/config/load-key-ring.test.ts'],
    [
      ['a new key is made where something is sealed already', 'if (!isNew) throw error', ''],
      [
        'a key file that others can read is accepted',
        '(statSync(file).mode & 0o077) !== 0',
        '(statSync(file).mode & 0o007) !== 0',
      ],
    ],
  ),
  ...inFile(
    'src/config/settings.ts',
    ['test/config/settings.test.ts'],
    [
      [
        'the file wins over the environment',
        "{ ...parseEnv(text.replace(/^\\uFEFF/, '')), ...Object.fromEntries(set) }",
        "{ ...Object.fromEntries(set), ...parseEnv(text.replace(/^\\uFEFF/, '')) }",
      ],
    ],
  ),
  ...inFile(
    'src/worker/sync-options.ts',
    ['test/config/worker.test.ts'],
    [
      [
        'a share of deletes above one is accepted',
        "check.checkNumber('sweep.maxDeleteShare', maxDeleteShare, 0, 1)",
        "check.checkNumber('sweep.maxDeleteShare', maxDeleteShare, 0, 100)",
      ],
    ],
  ),
  ...inFile(
    'src/telemetry/request-attributes.ts',
    ['test/telemetry/secrets.test.ts'],
    [['a request id of any form is recorded', 'return REQUEST_ID_PATTERN.test(id) ? id : undefined', 'return id']],
  ),
  ...inFile(
    'src/cli/main.ts',
    ['test/cli/exit-codes.test.ts'],
    [['a command that failed ends with 0', 'exitCode = reportError(cli, error,', 'reportError(cli, error,']],
  ),
  ...inFile(
    'src/cli/kit/diff-states.ts',
    ['test/cli/state.test.ts'],
    [['a difference of states shows the values', 'const values = reveal ?', 'const values = !reveal ?']],
  ),
  ...inFile(
    'src/cli/verbs/state-transitions.ts',
    ['test/cli/state.test.ts'],
    [
      ['a state moves without --yes', 'if (flags.yes !== true || store === null) {', 'if (store === null) {'],
      [
        'a state that moved meanwhile is overwritten',
        'flags.ifVersion !== undefined && flags.ifVersion !== before.version',
        'flags.ifVersion !== undefined && flags.ifVersion > before.version',
      ],
    ],
  ),
  ...inFile(
    'src/client/changes.ts',
    ['test/client/changes.test.ts', 'test/client/set-back.test.ts'],
    [
      [
        'the position moves before the change is done',
        `if (!seen.has(key)) yield change
            seen.add(key)
            position = advanceWithinPage(start, toLastChange(change))`,
        `position = advanceWithinPage(start, toLastChange(change))
            if (!seen.has(key)) yield change
            seen.add(key)`,
      ],
      [
        'the position is not saved when the loop is left',
        '// Also runs when the consumer leaves the loop: everything but the current change is processed.\n    await save()',
        '',
      ],
    ],
  ),
  ...inFile(
    'src/client/reader-position.ts',
    ['test/client/changes.test.ts', 'test/client/set-back.test.ts', 'test/client/parts.test.ts'],
    [
      ['the change after the anchor is skipped', 'changes.slice(at + 1)', 'changes.slice(at + 2)'],
      [
        'a store that was set back goes unnoticed',
        'if (upToDate || changes.some(({ updatedAt }) => updatedAt > anchor.updatedAt)) {',
        'if (changes.length < 0) {',
      ],
    ],
  ),
  ...inFile(
    'src/client/node/file-checkpoint.ts',
    ['test/client/parts.test.ts', 'test/client/changes.test.ts', 'test/client/killed.test.ts'],
    [
      [
        'a damaged checkpoint starts over',
        "throw new ClientError('CHECKPOINT_INVALID'",
        "if (cause !== null) return null\n        throw new ClientError('CHECKPOINT_INVALID'",
      ],
      ['a missing checkpoint fails', "if (error.code === 'ENOENT') return null", ''],
    ],
  ),
  ...inFile(
    'src/mcp/serve-mcp.ts',
    ['test/mcp/serve-mcp.test.ts'],
    [
      ['tools that write are offered', 'allowWrites || !writes', 'allowWrites || writes !== null'],
      ['errors show secrets', '${maskSecrets(error.message)}', '${error.message}'],
    ],
  ),
  ...inFile(
    'src/mcp/query-tool.ts',
    ['test/mcp/mcp.test.ts'],
    [['a query has no time limit', 'syntax.deadlineCondition === null ? [] : [syntax.deadlineCondition]', '[]']],
  ),
  ...inFile(
    'src/export/export-to-file.ts',
    ['test/export/export.test.ts'],
    [
      [
        'a change since the last export is written twice',
        'const from = last?.sequence ?? 0',
        'const from = Math.max(0, (last?.sequence ?? 0) - 1)',
      ],
      [
        'an export after compaction leaves a gap',
        'floor > last.sequence || headSequence < last.sequence',
        'headSequence < last.sequence',
      ],
      [
        'rows that changed during the export are written',
        'rows.filter(({ sequence }) => sequence <= until)',
        'rows.filter(({ sequence }) => sequence <= until + 1_000)',
      ],
    ],
  ),
  ...inFile(
    'src/linter/lint-observation.ts',
    ['test/linter/faults.test.ts'],
    [
      [
        'an early end is not found',
        'missed.length > 0 && last.changes.length >= most',
        'missed.length > 1_000 && last.changes.length >= most',
      ],
      ['missing deletions are not found', "mode === 'replace' || isSwept ||", "mode === 'replace' || true ||"],
    ],
  ),
  ...inFile(
    'src/advisor/choose-strategy.ts',
    ['test/advisor/choose-strategy.test.ts'],
    [
      [
        'a listing keeps its deletions',
        "mode === 'replace' ? 'swept' : chooseDeletes(answers)",
        'chooseDeletes(answers)',
      ],
      ['seconds of lag become milliseconds', 'answers.lagSeconds * 1_000', 'answers.lagSeconds'],
    ],
  ),
  ...inFile(
    'src/typings/json-schema-type-writer.ts',
    ['test/typings/types.test.ts'],
    [
      ['required members are optional', "required.has(name) ? '' : '?'", "required.has(name) ? '?' : ''"],
      ['a comment can be ended by a description', ".replaceAll('*/', '*\\\\/')", ''],
    ],
  ),
]
