/** What the engine does about an error, and what it tells the user. */
export type Remedy = 'retry' | 'wait' | 'reauth' | 'restart' | 'fix' | 'bug'

/** Whose move it is, as an exit code: 1 failed, 2 your input, 3 your environment. */
export type ErrorCategory = 'failed' | 'input' | 'environment' | 'interrupted'

interface ErrorCodeInfo {
  readonly remedy: Remedy
  readonly category: ErrorCategory
  /** What the user can do, as a sentence. */
  readonly advice: string
}

/** Codes are forever; advice improves. docs/reference/errors.md is compared with this table by a test. */
export const ERROR_CODES = {
  // The source
  SOURCE_UNAVAILABLE: defineCode('retry', 'failed', 'The source did not answer. The cycle is tried again from the last landed page.'),
  SOURCE_TIMEOUT: defineCode('retry', 'failed', 'The source took longer than the deadline. Raise `deadlineMs` if its pages are slow by nature.'),
  SOURCE_INVALID: defineCode('retry', 'failed', 'The source answered with something that is not data. Nothing of that page was landed.'),
  RATE_LIMITED: defineCode('wait', 'failed', 'The source asked to slow down. The cycle goes on after the wait; a pacer avoids it.'),
  AUTH_REJECTED: defineCode('reauth', 'failed', 'The source refused the credentials. Renew them, then run `tidemark resume <sync>`.'),
  SOURCE_NOT_FOUND: defineCode('fix', 'input', 'The source has nothing of that name. Check the spelling; what there is can be listed with `discover`.'),
  SOURCE_FORBIDDEN: defineCode('fix', 'environment', 'The source refuses this to the account that asks. Grant it what the message names.'),
  CURSOR_REJECTED: defineCode('restart', 'failed', 'The source no longer accepts the stored state. A tracked pair runs its backfill by itself; for any other sync, `tidemark state reset <sync>` shows what a new start reads and what it misses.'),
  HISTORY_LOST: defineCode('restart', 'failed', 'The source no longer keeps the changes since the stored state. A tracked pair runs its backfill by itself; for any other sync, `tidemark state reset <sync>` shows what a new start reads and what it misses.'),
  CONNECTOR_FAILED: defineCode('bug', 'failed', 'The connector threw; the message is its own. Run `tidemark preview <sync>` to see it alone.'),
  // The page
  PAGE_INVALID: defineCode('bug', 'failed', 'Return `{ changes, hasMore, nextState }` from `execute`.'),
  STATE_MISSING: defineCode('bug', 'failed', 'Return `nextState` with `hasMore: true`, or `hasMore: false` to end the cycle.'),
  STATE_INVALID: defineCode('bug', 'failed', 'Keep state to plain JSON: no Date, Map, BigInt, NaN or undefined inside.'),
  STATE_TOO_LARGE: defineCode('bug', 'failed', 'Keep positions in state, not records.'),
  DATA_KEY_REPLACED: defineCode('retry', 'failed', 'The data key was replaced while this process ran. Nothing was written; it is done again with the new one.'),
  STATE_ROLLED_BACK: defineCode('fix', 'environment', 'The state was put back, deleted or emptied behind the audit log, or only a part of the database was restored. Restore all of it, or run `tidemark state reset <sync>`.'),
  STATE_UNREADABLE: defineCode('fix', 'environment', 'The stored state cannot be read. It was left as it is; restore the key or the file it was written with.'),
  KEYS_MISSING: defineCode('fix', 'environment', 'Set TIDEMARK_KEY, or TIDEMARK_KEY_FILE to a file with it. `tidemark keys new` makes one; every process on the store needs the same.'),
  CURSOR_STALLED: defineCode('bug', 'failed', 'The source returned the same page and position again. The state must advance with every page.'),
  CURSOR_CYCLE: defineCode('bug', 'failed', 'The source returned to a position it had left in the same cycle.'),
  EMPTY_PAGES: defineCode('bug', 'failed', 'Too many empty pages in a row claimed that more would come. Raise `emptyPagesMax` if that is normal here.'),
  CANCELLED: defineCode('retry', 'interrupted', 'Stopped as asked. The next cycle continues after the last landed page.'),
  // The record
  KEY_INVALID: defineCode('fix', 'failed', 'A key is a non-empty string of at most 1024 bytes of well-formed text without NUL.'),
  RECORD_INVALID: defineCode('fix', 'failed', 'A record is a JSON object: no NaN, Infinity, function or cycle inside.'),
  RECORD_TOO_LARGE: defineCode('fix', 'failed', 'Leave out or split what makes the record this large, or raise `recordBytesMax`.'),
  RECORD_TOO_DEEP: defineCode('fix', 'failed', 'Flatten the record; nesting is limited.'),
  RECORD_TOO_WIDE: defineCode('fix', 'failed', 'Fold maps with many members into arrays; the number of members is limited.'),
  TEXT_UNSTORABLE: defineCode('fix', 'failed', 'Remove NUL characters and lone surrogates in the connector.'),
  TIMESTAMP_INVALID: defineCode('fix', 'failed', 'Give `upstreamUpdatedAt` as RFC 3339 with a zone, such as 2026-01-31T12:00:00.123456Z.'),
  SCHEMA_MISMATCH: defineCode('fix', 'failed', 'The record does not fit the declared schema of the database.'),
  SCHEMA_CHANGE_INVALID: defineCode('fix', 'failed', 'See `tidemark schema show <database>` for the columns, and `tidemark schema plan <database>` for what can be changed.'),
  // The cycle
  LEASE_HELD: defineCode('wait', 'failed', 'Another runner is at work on this sync. Wait for it, or see `tidemark status`.'),
  LEASE_LOST: defineCode('retry', 'failed', 'Another runner took this sync over. Nothing of this one was landed after that.'),
  VERSION_CONFLICT: defineCode('retry', 'failed', 'The checkpoint moved while the cycle ran. Nothing was overwritten; run it again.'),
  OVERLAP_UNRESOLVED: defineCode('retry', 'failed', 'Two syncs kept writing the same rows at the same moment. The page is read again next time.'),
  MASS_DELETE: defineCode('fix', 'failed', 'Check the source. If the rows are really gone, run `tidemark run <sync> --allow-deletes`.'),
  LISTING_INCOMPLETE: defineCode('retry', 'failed', 'The listing left out rows that the source still has, and nothing was deleted. The next cycle lists everything again. If it stays so, the lookup finds what the listing is not meant to show: make both tell the same, or run `tidemark run <sync> --allow-deletes`.'),
  SCOPE_CHANGED: defineCode('fix', 'failed', 'The account, its permissions or the filter changed. If that is right, run `tidemark run <sync> --allow-deletes`.'),
  TENANT_ERASED: defineCode('fix', 'failed', 'The tenant was erased, and nothing runs for it by itself any more. Stop what still runs for it; or, should it come back, ask for a run with `tidemark trigger <sync>` or make it a key.'),
  PAUSED: defineCode('fix', 'failed', 'The sync is paused. Run `tidemark resume <sync>`.'),
  // The store
  STORE_BUSY: defineCode('retry', 'environment', 'The database was locked by another writer for too long.'),
  STORE_UNAVAILABLE: defineCode('retry', 'environment', 'The database cannot be reached. Check that it runs and that `--store` is right.'),
  STORE_FULL: defineCode('retry', 'environment', 'The disk is full. Free some space; the sync continues by itself.'),
  STORE_READONLY: defineCode('fix', 'environment', 'The database cannot be written. Check its permissions; where it is a replica, give the address of its primary.'),
  STORE_NEWER: defineCode('fix', 'environment', 'This store was written by a newer tidemark. Upgrade; nothing was changed.'),
  STORE_OLDER: defineCode('fix', 'environment', 'This store was written before 0.1.0, when states were not sealed. Move it away, or give another store, and run: everything is read again. Nothing was changed; its rows can still be queried with SQL.'),
  STORE_FOREIGN: defineCode('fix', 'environment', 'Something that is not of tidemark stands where its tables or views belong. Give it another store or rename the database.'),
  STORE_UNSUPPORTED: defineCode('fix', 'environment', 'A setting asks for what this store cannot do. Change the setting, or use another store.'),
  STORE_FAILED: defineCode('bug', 'environment', 'The database refused a statement that should work. Please report it.'),
  COMMIT_UNKNOWN: defineCode('retry', 'environment', 'The connection broke during COMMIT. The next run reads back what was landed.'),
  // Restate
  RESTATE_UNAVAILABLE: defineCode('retry', 'environment', 'Check that Restate runs and that its address is right; `tidemark restate up` starts one on this machine.'),
  RESTATE_REFUSED: defineCode('fix', 'environment', 'Restate must reach the worker at the address it is told. Start it with `tidemark start --runner restate`, then register it.'),
  // Your input
  NAME_INVALID: defineCode('fix', 'input', 'Use letters, digits, `_`, `-` and `.`, starting with a letter or digit, at most 63.'),
  NAME_TAKEN: defineCode('fix', 'input', 'Give every database, pacer and sync of a worker a name of its own; only a sync and a database may share one.'),
  DATABASE_UNKNOWN: defineCode('fix', 'input', 'Declare it with `worker.database(name)` first.'),
  PACER_UNKNOWN: defineCode('fix', 'input', 'Declare it with `worker.pacer(name, …)` first.'),
  PACER_INVALID: defineCode('fix', 'input', 'Give `{ allowedRequests, intervalMs }`, both positive whole numbers.'),
  SCHEDULE_INVALID: defineCode('fix', 'input', 'Use "manual", "continuous", an interval from "1m" to "7d", or { cron: "*/5 * * * *" }.'),
  SYNC_INVALID: defineCode('fix', 'input', 'A sync needs a database, a mode and an `execute` function.'),
  SYNC_UNKNOWN: defineCode('fix', 'input', 'Run `tidemark status` to see the syncs of this worker.'),
  SCHEMA_INVALID: defineCode('fix', 'input', 'A schema is a Standard Schema (zod, valibot, arktype) or a JSON Schema object.'),
  WORKER_NOT_FOUND: defineCode('fix', 'input', 'Name the file with --file, or run `tidemark init` to make one.'),
  WORKER_INVALID: defineCode('fix', 'input', 'A worker file default-exports `new Worker()`.'),
  MANIFEST_INVALID: defineCode('fix', 'input', 'Correct the manifest at the line and column that the message names. docs/reference/manifest.schema.json says what it may hold, and editors can check it.'),
  PACKAGE_UNFIT: defineCode('fix', 'environment', 'Install the named release of the package beside the worker file.'),
  SECRET_MISSING: defineCode('fix', 'environment', 'Set it in the environment or in `.env`.'),
  ARGUMENT_INVALID: defineCode('fix', 'input', 'See `tidemark <verb> --help`.'),
  QUERY_TOO_LONG: defineCode('fix', 'input', 'Ask for less: conditions on `_key` are found by an index, all others look at every row.'),
  CONFIRMATION_NEEDED: defineCode('fix', 'input', 'Read the plan above and add --yes.'),
  STORE_URL_INVALID: defineCode('fix', 'input', 'Use sqlite:path/to/file.db, postgres://user@host/database, or the scheme of a registered store.'),
  KEY_UNKNOWN: defineCode('fix', 'input', 'Run `tidemark keys list` to see the keys of this tenant.'),
  WEBHOOK_UNKNOWN: defineCode('fix', 'input', 'Run `tidemark webhooks list` to see the webhooks of this tenant.'),
  WEBHOOK_URL_REFUSED: defineCode('fix', 'input', 'Give a public https URL. `--allow http,private,port` permits what is otherwise refused.'),
  WEBHOOK_INVALID: defineCode('fix', 'input', 'A webhook needs `verify` and `execute`, and a database when it brings changes.'),
  PORT_TAKEN: defineCode('fix', 'environment', 'Give another port, or end what listens there; `tidemark start --no-api` serves nothing.'),
  INTERNAL: defineCode('bug', 'failed', 'A promise of tidemark itself was broken. Please report it with the message.'),
} as const satisfies Record<string, ErrorCodeInfo>

export type ErrorCode = keyof typeof ERROR_CODES

export interface SyncErrorOptions {
  cause?: unknown
  /** How long the other side asked us to wait. */
  retryAfterMs?: number
}

/** Message = what happened, to what. What to do is the code's advice. Recognise it by `code`, never by text or class. */
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

/** By structure, not by class: a connector may carry a copy of this package of its own. */
export function isSyncError(error: unknown): error is SyncError {
  return (
    typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string' &&
    Object.hasOwn(ERROR_CODES, error.code) && 'message' in error && typeof error.message === 'string'
  )
}

function defineCode(remedy: Remedy, blame: ErrorCategory, advice: string): ErrorCodeInfo {
  return { remedy, category: blame, advice }
}
