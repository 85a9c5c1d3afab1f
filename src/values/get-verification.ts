/** The verification that repaired the row of a log entry; null if a cycle wrote it. See LogEntry. */
export function getVerification({ cycle, page }: { readonly cycle: number; readonly page: number }): number | null {
  return cycle === 0 && page > 0 ? page : null
}
