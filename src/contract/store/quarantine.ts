import type { SyncRef } from '../checkpoint.ts'
import type { ErrorCode } from '../errors.ts'

/** Records that could not be committed. */
export interface QuarantineStore {
  quarantineEntries(query?: { ref?: SyncRef; limit?: number }): Promise<QuarantineEntry[]>
}

/** A record that could not be stored, with the reason. */
export interface QuarantinedRecord {
  readonly database: string
  /** Null if there is no usable key. */
  readonly key: string | null
  readonly code: ErrorCode
  readonly message: string
  /** As much of the record as can be stored, as text without NUL and lone surrogates. */
  readonly text: string
}

/** A quarantined record, with the cycle and page that returned it. */
export interface QuarantineEntry extends QuarantinedRecord {
  readonly id: number
  readonly worker: string
  readonly sync: string
  readonly cycle: number
  readonly page: number
  readonly at: number
}
