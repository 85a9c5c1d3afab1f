/** A snapshot in table metadata. */
export interface Snapshot {
  readonly 'snapshot-id': number
  readonly 'parent-snapshot-id'?: number
  readonly 'sequence-number': number
  readonly 'timestamp-ms': number
  readonly 'manifest-list': string
  readonly 'schema-id': number
  readonly summary: Readonly<Record<string, string>>
}

/** How long replaced versions of a table stay readable. */
export interface Retention {
  /** The newest snapshots, whatever their age. */
  readonly snapshotsMin: number
  /** Files that a snapshot of this age needs are kept. */
  readonly keepMs: number
}

const SLOTS = 16

/**
 * The snapshots to keep, of a list in order of time: the newest ones, one per sixteenth of the time before, and the
 * newest that is older than that. Files that none of them names, and that are older themselves, have been unused for
 * all that time.
 */
export function retainSnapshots(
  snapshots: readonly Snapshot[],
  now: number,
  { snapshotsMin, keepMs }: Retention,
): Snapshot[] {
  const kept: Snapshot[] = []
  const slotMs = Math.max(1, keepMs / SLOTS)
  for (const snapshot of snapshots.toReversed()) {
    const at = snapshot['timestamp-ms']
    const later = kept.at(-1)
    const slotOf = (time: number): number => Math.floor(time / slotMs)
    const isKept = later === undefined || kept.length < snapshotsMin || slotOf(at) !== slotOf(later['timestamp-ms'])
    if (!isKept) continue
    kept.push(snapshot)
    if (kept.length >= snapshotsMin && now - at >= keepMs) break
  }
  return kept.toReversed()
}
