import type { SyncRef } from '../checkpoint.ts'
import type { ErrorCode } from '../errors.ts'

/** Records that could not be committed. */
export interface QuarantineStore {
  quarantineEntries(query?: { ref?: SyncRef; limit?: number }): Promise<QuarantineEntry[]>
}

export interface QuarantinedRecord {
  readonly database: string
  /** Null if there is no usable key. */
  readonly key: string | null
  readonly code: ErrorCode
  readonly message: string
  /** As much of the record as can be stored, as text without NUL and lone surrogates. */
  readonly text: string
}

export interface QuarantineEntry extends QuarantinedRecord {
  readonly id: number
  readonly worker: string
  readonly sync: string
  readonly cycle: number
  readonly page: number
  readonly at: number
}
