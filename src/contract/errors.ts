/** The engine's reaction to an error, and the action that the user has to take. */
export type Remedy = 'retry' | 'wait' | 'reauth' | 'restart' | 'fix' | 'bug'

/** The party that has to act, as an exit code: 1 failed, 2 invalid input, 3 environment problem. */
export type ErrorCategory = 'failed' | 'input' | 'environment' | 'interrupted'

interface ErrorCodeInfo {
  readonly remedy: Remedy
  readonly category: ErrorCategory
  /** The next step for the user, as a sentence. */
  readonly advice: string
}

/** Codes never change; advice may improve. A test compares docs/reference/errors.md with this table. */
export const ERROR_CODES = {
  // The source
  SOURCE_UNAVAILABLE: defineCode(
    'retry',
    'failed',
    'The source did not respond. The cycle is retried from the last committed page.',
  ),
  SOURCE_TIMEOUT: defineCode(
    'retry',
    'failed',
    'The source took longer than the deadline. Raise `deadlineMs` if its pages are usually slow.',
  ),
  SOURCE_INVALID: defineCode(
    'retry',
    'failed',
    'The source returned a response that is not valid data. Nothing from that page was committed.',
  ),
  RATE_LIMITED: defineCode(
    'wait',
    'failed',
    'The source limited the request rate. The cycle continues after the wait; configure a pacer to avoid it.',
  ),
  AUTH_REJECTED: defineCode(
    'reauth',
    'failed',
    'The source rejected the credentials. Renew them, then run `tidemark resume <sync>`.',
  ),
  SOURCE_NOT_FOUND: defineCode(
    'fix',
    'input',
    'The source has no object with that name. Check the spelling, or list the available objects with `discover`.',
  ),
  SOURCE_FORBIDDEN: defineCode(
    'fix',
    'environment',
    'The source denied access to this account. Grant the permission that the message names.',
  ),
  CURSOR_REJECTED: defineCode(
    'restart',
    'failed',
    'The source no longer accepts the stored state. A tracked pair runs its backfill automatically. For any other sync, run `tidemark state reset <sync>` to see what a fresh start reads and what it misses.',
  ),
  HISTORY_LOST: defineCode(
    'restart',
    'failed',
    'The source no longer keeps the changes since the stored state. A tracked pair runs its backfill automatically. For any other sync, run `tidemark state reset <sync>` to see what a fresh start reads and what it misses.',
  ),
  CONNECTOR_FAILED: defineCode(
    'bug',
    'failed',
    'Your connector threw an exception. Run `tidemark preview <sync>` to run it in isolation.',
  ),
  // The page
  PAGE_INVALID: defineCode('bug', 'failed', 'Return `{ changes, hasMore, nextState }` from `execute`.'),
  STATE_MISSING: defineCode(
    'bug',
    'failed',
    'Return `nextState` with `hasMore: true`, or `hasMore: false` to end the cycle.',
  ),
  STATE_INVALID: defineCode(
    'bug',
    'failed',
    'Keep state to plain JSON: no Date, Map, BigInt, NaN or undefined inside.',
  ),
  STATE_TOO_LARGE: defineCode('bug', 'failed', 'Keep cursors in state, not records.'),
  DATA_KEY_REPLACED: defineCode(
    'retry',
    'failed',
    'The data key was replaced while this process ran. Nothing was written; the operation is retried with the new key.',
  ),
  STATE_ROLLED_BACK: defineCode(
    'fix',
    'environment',
    'The state was rolled back, deleted or emptied without an audit log entry, or the database was restored in part. Restore the whole database, or run `tidemark state reset <sync>`.',
  ),
  STATE_UNREADABLE: defineCode(
    'fix',
    'environment',
    'The stored state cannot be decrypted or parsed. It was not changed; restore the key or the file it was written with.',
  ),
  KEYS_MISSING: defineCode(
    'fix',
    'environment',
    'Set TIDEMARK_KEY, or set TIDEMARK_KEY_FILE to the path of a key file. `tidemark keys new` creates a key; every process that uses the store needs the same one.',
  ),
  CURSOR_STALLED: defineCode(
    'bug',
    'failed',
    'The source returned the same page and the same state twice. The state must advance with every page.',
  ),
  CURSOR_CYCLE: defineCode(
    'bug',
    'failed',
    'The source returned to a state that it had already left in the same cycle. Fix the paging of the connector.',
  ),
  EMPTY_PAGES: defineCode(
    'bug',
    'failed',
    'The source returned too many empty pages in a row with `hasMore: true`. Raise `emptyPagesMax` if that is normal for this source.',
  ),
  CANCELLED: defineCode(
    'retry',
    'interrupted',
    'The cycle was cancelled on request. The next cycle continues after the last committed page.',
  ),
  // The record
  KEY_INVALID: defineCode(
    'fix',
    'failed',
    'A key must be a non-empty string of well-formed text, at most 1024 bytes long and without NUL.',
  ),
  RECORD_INVALID: defineCode(
    'fix',
    'failed',
    'A record must be a JSON object without NaN, Infinity, functions or circular references, and readable by its source.',
  ),
  RECORD_TOO_LARGE: defineCode(
    'fix',
    'failed',
    'Remove or split the large fields of the record, or raise `recordBytesMax`.',
  ),
  RECORD_TOO_DEEP: defineCode('fix', 'failed', 'Flatten the record; the nesting depth is limited.'),
  RECORD_TOO_WIDE: defineCode(
    'fix',
    'failed',
    'Turn maps with many fields into arrays; the number of fields is limited.',
  ),
  TEXT_UNSTORABLE: defineCode('fix', 'failed', 'Remove NUL characters and lone surrogates in the connector.'),
  TIMESTAMP_INVALID: defineCode(
    'fix',
    'failed',
    'Set `upstreamUpdatedAt` to an RFC 3339 time with a zone, such as 2026-01-31T12:00:00.123456Z.',
  ),
  SCHEMA_MISMATCH: defineCode(
    'fix',
    'failed',
    'The record does not match the declared schema of the database. Fix the record or the schema.',
  ),
  SCHEMA_CHANGE_INVALID: defineCode(
    'fix',
    'failed',
    'Run `tidemark schema show <database>` to see the columns, and `tidemark schema plan <database>` to see the possible changes.',
  ),
  // The cycle
  LEASE_HELD: defineCode(
    'wait',
    'failed',
    'Another runner holds the lease of this sync. Wait for it, or run `tidemark status` to see the holder.',
  ),
  LEASE_LOST: defineCode(
    'retry',
    'failed',
    'Another runner took over this sync. This runner committed nothing after that.',
  ),
  VERSION_CONFLICT: defineCode(
    'retry',
    'failed',
    'The checkpoint changed while the cycle ran. Nothing was overwritten; run the sync again.',
  ),
  OVERLAP_UNRESOLVED: defineCode(
    'retry',
    'failed',
    'Two syncs kept writing the same rows at the same time. The next cycle reads the page again.',
  ),
  MASS_DELETE: defineCode(
    'fix',
    'failed',
    'Check the source. If the rows are really deleted there, run `tidemark run <sync> --allow-deletes`.',
  ),
  LISTING_INCOMPLETE: defineCode(
    'retry',
    'failed',
    'The listing omitted rows that the source still has, so nothing was deleted. The next cycle lists everything again. If the error persists, the lookup finds records that the listing excludes: make both return the same records, or run `tidemark run <sync> --allow-deletes`.',
  ),
  SCOPE_CHANGED: defineCode(
    'fix',
    'failed',
    'The account, its permissions or the filter changed. If the change is intended, run `tidemark run <sync> --allow-deletes`.',
  ),
  VERIFICATION_INVALID: defineCode(
    'fix',
    'input',
    'Correct the declaration of the verification. docs/guides/verify.md lists its options.',
  ),
  VERIFY_UNSUPPORTED: defineCode(
    'fix',
    'input',
    'The source can neither list its records nor look up single ones. docs/guides/verify.md lists what a verification can ask.',
  ),
  RANGE_UNSUPPORTED: defineCode(
    'fix',
    'input',
    'Only sources with a filter for times can read a range. docs/reference/sources.md lists them.',
  ),
  TENANT_ERASED: defineCode(
    'fix',
    'failed',
    'The tenant was erased, so scheduled runs are refused. Stop the processes that still run for it. To bring the tenant back, run `tidemark trigger <sync>` or create an API key for it.',
  ),
  PAUSED: defineCode('fix', 'failed', 'The sync is paused. Run `tidemark resume <sync>`.'),
  // The store
  STORE_BUSY: defineCode(
    'retry',
    'environment',
    'Another writer locked the database for too long. The operation is retried.',
  ),
  STORE_UNAVAILABLE: defineCode(
    'retry',
    'environment',
    'The database cannot be reached. Check that it is running and that `--store` is correct.',
  ),
  STORE_FULL: defineCode(
    'retry',
    'environment',
    'The disk is full. Free some space; the sync then continues automatically.',
  ),
  STORE_READONLY: defineCode(
    'fix',
    'environment',
    'The database is not writable. Check its permissions; if it is a replica, use the address of its primary.',
  ),
  STORE_NEWER: defineCode(
    'fix',
    'environment',
    'A newer version of Tidemark wrote this store. Upgrade Tidemark; nothing was changed.',
  ),
  STORE_OLDER: defineCode(
    'fix',
    'environment',
    'This store was written before version 0.1.0, which did not encrypt states. Move it away or use another store, then run the syncs: they read everything again. Nothing was changed; you can still query its rows with SQL.',
  ),
  STORE_FOREIGN: defineCode(
    'fix',
    'environment',
    'A table or view that does not belong to Tidemark prevents it from using the store. If it has a name that Tidemark needs, use another store or rename the database.',
  ),
  STORE_UNSUPPORTED: defineCode(
    'fix',
    'environment',
    'A setting requires a feature that this store does not support. Change the setting, or use another store.',
  ),
  STORE_FAILED: defineCode(
    'bug',
    'environment',
    'The database rejected a statement that should work. Please report it.',
  ),
  COMMIT_UNKNOWN: defineCode(
    'retry',
    'environment',
    'The connection broke during COMMIT. The next run reads back whether the page was committed.',
  ),
  // The destination
  DESTINATION_UNAVAILABLE: defineCode(
    'retry',
    'environment',
    'The destination cannot be reached or is busy. The batch is retried; nothing is lost in the meantime.',
  ),
  DESTINATION_FULL: defineCode(
    'retry',
    'environment',
    'The disk of the destination is full. Free some space; the destination then continues automatically.',
  ),
  DESTINATION_REFUSED: defineCode(
    'fix',
    'environment',
    'The destination rejected the credentials, the permissions or a setting; the message says which. Correct it, then run `tidemark destinations run <name>`.',
  ),
  DESTINATION_FOREIGN: defineCode(
    'fix',
    'environment',
    'The destination has rows of another store, or a table that does not belong to Tidemark. Use another schema or file; `tidemark destinations resync <name>` replaces rows of another store.',
  ),
  DESTINATION_AHEAD: defineCode(
    'fix',
    'environment',
    'The destination has changes that this store does not have, as after a restore of the store. Run `tidemark destinations resync <name>` to load it again.',
  ),
  DESTINATION_FAILED: defineCode(
    'bug',
    'environment',
    'The destination rejected a record. Nothing of its batch was applied, and nothing is skipped. If the message shows a cause on your side, such as a constraint, remove it and run `tidemark destinations run <name>`. Otherwise please report it.',
  ),
  // Restate
  RESTATE_UNAVAILABLE: defineCode(
    'retry',
    'environment',
    'Check that Restate is running and that its address is correct; `tidemark restate up` starts it on this machine.',
  ),
  RESTATE_REFUSED: defineCode(
    'fix',
    'environment',
    'Restate must be able to reach the worker at the registered address. Start the worker with `tidemark start --runner restate`, then register it.',
  ),
  // Your input
  NAME_INVALID: defineCode(
    'fix',
    'input',
    'Use letters, digits, `_`, `-` and `.`, starting with a letter or digit, at most 63 characters.',
  ),
  NAME_TAKEN: defineCode(
    'fix',
    'input',
    'Give every database, pacer and sync of a worker a unique name; only a sync and a database may share one.',
  ),
  DATABASE_UNKNOWN: defineCode('fix', 'input', 'Declare the database with `worker.database(name)` first.'),
  PACER_UNKNOWN: defineCode('fix', 'input', 'Declare the pacer with `worker.pacer(name, …)` first.'),
  PACER_INVALID: defineCode('fix', 'input', 'Set `{ allowedRequests, intervalMs }`, both positive integers.'),
  SCHEDULE_INVALID: defineCode(
    'fix',
    'input',
    'Use "manual", "continuous", an interval from "1m" to "7d", or { cron: "*/5 * * * *" }.',
  ),
  SYNC_INVALID: defineCode('fix', 'input', 'A sync needs a database, a mode and an `execute` function.'),
  SYNC_UNKNOWN: defineCode('fix', 'input', 'Run `tidemark status` to see the syncs of this worker.'),
  SCHEMA_INVALID: defineCode(
    'fix',
    'input',
    'A schema is a Standard Schema (zod, valibot, arktype) or a JSON Schema object.',
  ),
  COLUMNS_INVALID: defineCode(
    'fix',
    'input',
    'Correct the rule that the message names. See docs/guides/columns.md for the rules and their order.',
  ),
  WORKER_NOT_FOUND: defineCode('fix', 'input', 'Pass the file with --file, or run `tidemark init` to create one.'),
  WORKER_INVALID: defineCode('fix', 'input', 'A worker file must default-export `new Worker()`.'),
  MANIFEST_INVALID: defineCode(
    'fix',
    'input',
    'Correct the manifest at the line and column in the message. The format is described by docs/reference/manifest.schema.json, which editors can validate against.',
  ),
  PACKAGE_UNFIT: defineCode(
    'fix',
    'environment',
    'Install the required version of the package next to the worker file.',
  ),
  SECRET_MISSING: defineCode('fix', 'environment', 'Set the secret in the environment or in `.env`.'),
  ARGUMENT_INVALID: defineCode('fix', 'input', 'See `tidemark <verb> --help`.'),
  QUERY_TOO_LONG: defineCode(
    'fix',
    'input',
    'Narrow the query: conditions on `_key` use an index, all others scan every row.',
  ),
  CONFIRMATION_NEEDED: defineCode('fix', 'input', 'Review the plan above and add --yes.'),
  STORE_URL_INVALID: defineCode(
    'fix',
    'input',
    'Use sqlite:path/to/file.db, postgres://user@host/database, or the scheme of a registered store.',
  ),
  KEY_UNKNOWN: defineCode('fix', 'input', 'Run `tidemark keys list` to see the keys of this tenant.'),
  DESTINATION_UNKNOWN: defineCode(
    'fix',
    'input',
    'Run `tidemark destinations list` to see the destinations of this worker.',
  ),
  DESTINATION_INVALID: defineCode(
    'fix',
    'input',
    'A destination needs `open` and `supports`, as the functions of tidemark/destinations return them, and a mode that it supports.',
  ),
  CONNECTION_UNKNOWN: defineCode(
    'fix',
    'input',
    'Run `tidemark connections list` to see the connections of this tenant, or `tidemark connections add` to create one.',
  ),
  CONNECTION_INVALID: defineCode(
    'fix',
    'input',
    'Correct the setting or the credentials that the message names. `tidemark connections add --help` lists the options.',
  ),
  CONNECTION_CHANGED: defineCode(
    'retry',
    'failed',
    'The connection was changed at the same time. Nothing was overwritten; read it and try again.',
  ),
  CONNECTION_INACTIVE: defineCode(
    'reauth',
    'failed',
    'The connection cannot be used. Run `tidemark connections show <name>` to see why, then `connections reauthorize` or `connections enable`.',
  ),
  WEBHOOK_UNKNOWN: defineCode('fix', 'input', 'Run `tidemark webhooks list` to see the webhooks of this tenant.'),
  WEBHOOK_URL_REFUSED: defineCode(
    'fix',
    'input',
    'Use a public https URL. `--allow http,private,port` lifts these restrictions.',
  ),
  WEBHOOK_INVALID: defineCode(
    'fix',
    'input',
    'A webhook needs `verify` and `execute`, and a database if it returns changes.',
  ),
  PORT_TAKEN: defineCode(
    'fix',
    'environment',
    'Use another port, or stop the process that listens on it; `tidemark start --no-api` runs without the API.',
  ),
  INTERNAL: defineCode('bug', 'failed', 'Internal error in Tidemark. Please report it with the message.'),
} as const satisfies Record<string, ErrorCodeInfo>

/** A code of `ERROR_CODES`. Codes are permanent; messages may change. */
export type ErrorCode = keyof typeof ERROR_CODES

/** Optional details of a `SyncError`. */
export interface SyncErrorOptions {
  cause?: unknown
  /** The wait that the other side requested. */
  retryAfterMs?: number
}

/**
 * The message says what happened, and to what; the code's advice says what to do. Match on `code`, never on text or
 * class.
 */
export class SyncError extends Error {
  override readonly name = 'SyncError'
  readonly code: ErrorCode
  readonly retryAfterMs: number | undefined

  constructor(code: ErrorCode, message: string, options: SyncErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.retryAfterMs = options.retryAfterMs
  }

  get remedy(): Remedy {
    return ERROR_CODES[this.code].remedy
  }

  get advice(): string {
    return ERROR_CODES[this.code].advice
  }
}

/** Checks the structure, not the class: a connector may bundle its own copy of this package. */
export function isSyncError(error: unknown): error is SyncError {
  return (
    typeof error === 'object' &&
    error !== null &&
    'code' in error &&
    typeof error.code === 'string' &&
    Object.hasOwn(ERROR_CODES, error.code) &&
    'message' in error &&
    typeof error.message === 'string'
  )
}

function defineCode(remedy: Remedy, category: ErrorCategory, advice: string): ErrorCodeInfo {
  return { remedy, category, advice }
}
