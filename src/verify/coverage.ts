import type { Row, Store } from '../contract/index.ts'
import { canonicalizeInstant } from '../values/instant.ts'
import type { SourceRecord } from './source-reader.ts'
import type { VerifiedSource } from './verification-plan.ts'

/** The promises of a source's syncs about the copy. */
export interface Coverage {
  /** Invariant 12: every version of the source up to this time is in the copy. Canonical; null without a promise. */
  readonly tidemark: string | null
  /** When the last complete cycle began; null if none has completed. */
  readonly completeSince: number | null
}

/** Read before the copy: a promise that is made later says nothing about the rows that were read. */
export async function readCoverage(store: Store, { syncs }: VerifiedSource): Promise<Coverage> {
  let tidemark: string | null = null
  let completeSince: number | null = null
  for (const { worker, sync } of syncs) {
    const checkpoint = await store.readCheckpoint({ worker, sync })
    const own = checkpoint.tidemark === null ? null : canonicalizeInstant(checkpoint.tidemark)
    if (own !== null && (tidemark === null || own > tidemark)) tidemark = own
    if (checkpoint.completeSince !== null) completeSince = Math.max(completeSince ?? 0, checkpoint.completeSince)
  }
  return { tidemark, completeSince }
}

/**
 * Whether the copy has to agree with the source: a complete cycle began more than the source's lag after the
 * difference was first seen, or the source's version has a time at or before the tidemark, and the copy has none as late.
 */
export function isDue(
  { record, row, since }: { readonly record: SourceRecord | null; readonly row: Row | null; readonly since: number },
  { tidemark, completeSince }: Coverage,
  lagMs: number,
): boolean {
  if (completeSince !== null && completeSince > since + lagMs) return true
  const { upstreamAt = null, asOf } = record?.landing ?? {}
  // A time that is only a bound does not show when the version appeared.
  if (upstreamAt === null || asOf !== undefined || tidemark === null) return false
  return upstreamAt <= tidemark && (row === null || (row.upstreamAt !== null && row.upstreamAt < upstreamAt))
}
