import { TABLES } from './migrations/0001-tables.ts'
import { STOP_WORD } from './migrations/0002-stop-word.ts'
import { SERVED } from './migrations/0003-served.ts'
import { CHAIN } from './migrations/0004-chain.ts'
import { WEBHOOKS } from './migrations/0005-webhooks.ts'
import { CONSUMERS } from './migrations/0006-consumers.ts'
import { ERASURE } from './migrations/0007-erasure.ts'
import { HELD_SINCE } from './migrations/0008-held-since.ts'
import { KEPT } from './migrations/0009-kept.ts'
import { SHARED_PACERS } from './migrations/0010-shared-pacers.ts'
import { GUARD } from './migrations/0011-guard.ts'
import { ERASED } from './migrations/0012-erased.ts'
import { BACKFILL_NEEDED } from './migrations/0013-backfill-needed.ts'
import { PAUSES } from './migrations/0014-pauses.ts'
import { CONTESTED } from './migrations/0015-contested.ts'
import { BOUND } from './migrations/0016-bound.ts'
import { TYPED_TABLES } from './migrations/0017-typed-tables.ts'
import { SCHEMA_CHANGES } from './migrations/0018-schema-changes.ts'
import { HISTORY_DAYS } from './migrations/0019-history-days.ts'
import { DELETES } from './migrations/0020-deletes.ts'

/** Each takes the tables from version n to n + 1; the first makes them. All that are needed run in one transaction. */
export const MIGRATIONS: readonly string[] = [
  TABLES, STOP_WORD, SERVED, CHAIN, WEBHOOKS, CONSUMERS, ERASURE, HELD_SINCE, KEPT, SHARED_PACERS, GUARD, ERASED,
  BACKFILL_NEEDED, PAUSES, CONTESTED, BOUND, TYPED_TABLES, SCHEMA_CHANGES, HISTORY_DAYS, DELETES,
]

/** Version of the tables; a file with a higher one was written by a newer tidemark and is left alone. */
export const SCHEMA_VERSION = MIGRATIONS.length

/** Before it states were not sealed, and what is not sealed is never taken for a state. No release wrote such a store. */
export const SCHEMA_VERSION_MIN = 4
