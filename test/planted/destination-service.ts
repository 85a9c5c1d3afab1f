import { inFile, type PlantedBug } from './planted-bug.ts'

const MANIFEST = ['test/config/manifest.test.ts']
const REJECTED = ['test/destinations/rejected-batch.test.ts']
const RUNNER = ['test/destinations/runner.test.ts']
const EVENTS = ['test/destinations/events.test.ts']
const MESSAGES = [...EVENTS, 'test/stores/sqlite.test.ts']
const MESSAGE_RULE = 'a message is queued|events that it names'
const ROUTES = ['test/server/destination-routes.test.ts']
const ADD = ['test/config/add-destination.test.ts']
const ADD_VERB = ['test/cli/destinations-add.pg.test.ts']

/** The registry, manifests, commands and status of destinations. */
export const DESTINATION_SERVICE_BUGS: readonly PlantedBug[] = [
  ...inFile(
    'src/destinations/registry.ts',
    ['test/destinations/registry.test.ts'],
    [['a destination is missing from the registry', '  postgres,\n', '']],
  ),
  ...inFile('src/config/manifest/manifest-document.ts', MANIFEST, [
    ['a secret of a destination stays a name', "secrets === 'named' && isSecret", 'isSecret'],
    ['two destinations may have one name', 'destinations.map(({ name }) => name),', '[],'],
  ]),
  ...inFile('src/config/manifest/create-destination.ts', MANIFEST, [
    ['the mode of a destination is ignored', '...(mode !== undefined && { mode }),', ''],
  ]),
  ...inFile('src/config/manifest/manifest.ts', MANIFEST, [
    ['an unknown database is reported at its destination', "? ['databases', unknown] : []", '? [] : []'],
  ]),
  ...inFile('src/config/manifest/add-destination.ts', ADD, [
    ['a manifest is written again for an entry', 'isDeepStrictEqual(parseValue(inserted), document.toJS())', 'false'],
    [
      'the inserted text is not compared',
      'return isDeepStrictEqual(parseValue(inserted), document.toJS())',
      'return true',
    ],
  ]),
  ...inFile('src/config/env-file.ts', ADD, [
    ['a variable with another value is set twice', "present[name] !== undefined && present[name] !== ''", 'false'],
    ['a value that .env cannot hold is written', 'parseEnv(result)[name] !== value', 'false'],
  ]),
  ...inFile('src/cli/kit/destination-config.ts', ADD_VERB, [
    [
      'a secret is written to the manifest',
      'if (isSecret(field) && !isName) secrets[variable] = text',
      'secrets[variable] = text',
    ],
    ['a variable that is set already is ignored', 'isSecret(found) && hasVariable(variable)', 'false'],
  ]),
  ...inFile('src/cli/verbs/destinations-add.ts', ADD_VERB, [
    ['the connection is not tested', 'await testConnection(cli, plan, target.tenant)', ''],
    ['a dry run writes', 'if (flags.dryRun !== true) {', 'if (plan !== undefined) {'],
  ]),
  ...inFile('src/destinations/loop/rejected-batch.ts', REJECTED, [
    ['a rejected batch is not searched', "code !== 'DESTINATION_FAILED' || batch", "code !== 'LEASE_LOST' || batch"],
    ['every error is searched', "code !== 'DESTINATION_FAILED' || batch", 'batch'],
    ['the size of batches never grows again', 'this.#rowsMax * 2', 'this.#rowsMax'],
  ]),
  ...inFile(
    'src/destinations/loop/run-destination.ts',
    [...REJECTED, ...RUNNER],
    [
      ['a full disk is retried at once', " && failure.code !== 'DESTINATION_FULL'", ''],
      ['a database that failed is tried in every run', 'if (waiting.has(database)) continue', ''],
      ['a temporary error counts as a rejected record', "isWaiting ? 'waiting' : 'failed'", "'failed'"],
      ['the wait of a failed database is forgotten', 'hasWaiting ? { failures, error, retryAt } : ', ''],
    ],
  ),
  ...inFile('src/destinations/loop/run-destination.ts', EVENTS, [
    ['a failure is reported by every run', ' && !reported.has(one.database)', ''],
    ['a later failure of another database is not reported', 'failing.length === 0 && error !== null', 'error !== null'],
    ['a recovery is reported by every run', 'return error === null && failingBefore.length === 0 ? null :', 'return'],
    ['an event of a run that lost its claim is reported', '|| event === null) return', '&& event === null) return'],
    ['a stopped run reports a failure', 'if (failure !== null && this.#signal.aborted) return null\n', ''],
    ['the event names the key of a record', 'this.#errors.set(database, error)', ''],
    ['two messages of a run have one id', '_${++this.#eventCount}`', '`'],
  ]),
  ...inFile('src/stores/kit/roles/webhooks.ts', MESSAGES, [
    [
      'every webhook receives every event',
      'messages.filter(({ action }) => wanted.has(action))',
      '[...messages]',
      MESSAGES,
      MESSAGE_RULE,
    ],
    [
      'a message takes the number of a pending one',
      'sequence: (last ?? FIRST_MESSAGE - 1) + 1 + at,',
      'sequence: FIRST_MESSAGE + at,',
      MESSAGES,
      MESSAGE_RULE,
    ],
  ]),
  ...inFile('src/stores/kit/roles/destinations.ts', MESSAGES, [
    ['the messages of a report are lost', 'yield* addMessages(sql, messages ?? [])', '', MESSAGES, MESSAGE_RULE],
  ]),
  ...inFile(
    'src/destinations/loop/destination-due.ts',
    [...REJECTED, ...RUNNER],
    [
      [
        'a database that failed delays the others',
        'failed.size === 0 || databases.every((database) => failed.has(database))',
        'failed.size >= 0',
      ],
      ['a failed database without a wait is never tried', 'return retryAt === null\n', 'return false\n'],
    ],
  ),
  ...inFile(
    'src/destinations/loop/decide-start.ts',
    ['test/destinations/memory.test.ts'],
    [
      [
        'an interrupted load begins again',
        "return { kind: 'resume', token: loading }",
        "return { kind: 'load', reason: 'new', replaces: loading }",
        ['test/destinations/memory.test.ts'],
        'another process began',
      ],
    ],
  ),
  ...inFile('src/destinations/loop/sync-database.ts', RUNNER, [
    [
      'an idle destination never moves its token',
      'part.committedAt - token.committedAt < QUIET_MS',
      'part.committedAt >= 0',
    ],
    ['an idle destination moves its token with every entry', 'QUIET_MS = 3_600_000', 'QUIET_MS = 0'],
  ]),
  ...inFile('src/destinations/loop/destination-runner.ts', RUNNER, [
    ['every tenant gets the rows of the first', 'tenant === store.tenant ? store : store.forTenant(tenant)', 'store'],
  ]),
  ...inFile('src/destinations/loop/destination-overview.ts', ROUTES, [
    [
      'a failed database is only a warning',
      "databases.some(({ state }) => state === 'failed')",
      'databases.length < 0',
    ],
    ['the lag of an idle destination grows', 'one.readSequence < headSequence', 'one.readSequence > headSequence'],
    [
      'only stored destinations are listed',
      '[...declared.map(({ name }) => name), ...stored.keys()]',
      '[...stored.keys()]',
    ],
  ]),
  ...inFile('src/server/destination-routes.ts', ROUTES, [
    [
      'the key of a rejected record is shown to every caller',
      'if (missing === undefined) return document',
      'if (scopes.length > 0) return document',
    ],
    ['an unknown database is requested', 'if (unknown !== undefined)', 'if (unknown === null)'],
  ]),
]
