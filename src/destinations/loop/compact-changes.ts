import type { DestinationChange, DestinationMode } from '../../contract/index.ts'

/** For a mirror, only the last change of a key counts. The other modes need every change. */
export function compactChanges(mode: DestinationMode, changes: readonly DestinationChange[]): DestinationChange[] {
  if (mode !== 'mirror') return [...changes]
  const last = new Map<string, DestinationChange>()
  for (const change of changes) {
    // Deleted first, so that the order is that of the last changes.
    last.delete(change.key)
    last.set(change.key, change)
  }
  return [...last.values()]
}
