import type { BatchStats } from './provider.ts'

/**
 * The import of one cycle; a resumed cycle continues its totals. Stored with every batch, in the batch's own
 * transaction.
 */
export interface ImportSession {
  readonly cycle: number
  readonly startedAt: number
  readonly status: 'completed' | 'started'
  readonly operations: Readonly<Record<string, ImportTotals>>
  /** Provider switches in this session. */
  readonly switches: number
}

/** The sums over all batches of a session. */
export interface ImportTotals extends BatchStats {
  readonly batches: number
}

export function createSession(cycle: number, startedAt: number): ImportSession {
  return { cycle, startedAt, status: 'started', operations: {}, switches: 0 }
}

export function addBatch(session: ImportSession, operation: string, stats: BatchStats, isLast: boolean): ImportSession {
  const { batches, fetched, deduplicated, yielded } = session.operations[operation] ?? {
    batches: 0,
    fetched: 0,
    deduplicated: 0,
    yielded: 0,
  }
  return {
    ...session,
    status: isLast ? 'completed' : 'started',
    operations: {
      ...session.operations,
      [operation]: {
        batches: batches + 1,
        fetched: fetched + stats.fetched,
        deduplicated: deduplicated + stats.deduplicated,
        yielded: yielded + stats.yielded,
      },
    },
  }
}
