import type { BatchStats } from './provider.ts'

/** One cycle's import, resumed with its totals when the cycle is. Kept with every batch, in the batch's own transaction. */
export interface Session {
  readonly cycle: number
  readonly startedAt: number
  readonly status: 'completed' | 'started'
  readonly operations: Readonly<Record<string, SessionTotals>>
  /** Changes of provider in this session. */
  readonly switches: number
}

export interface SessionTotals extends BatchStats {
  readonly batches: number
}

export function newSession(cycle: number, startedAt: number): Session {
  return { cycle, startedAt, status: 'started', operations: {}, switches: 0 }
}

export function withBatch(session: Session, operation: string, stats: BatchStats, isLast: boolean): Session {
  const { batches, fetched, deduplicated, yielded } = session.operations[operation] ?? { batches: 0, fetched: 0, deduplicated: 0, yielded: 0 }
  return {
    ...session,
    status: isLast ? 'completed' : 'started',
    operations: {
      ...session.operations,
      [operation]: { batches: batches + 1, fetched: fetched + stats.fetched, deduplicated: deduplicated + stats.deduplicated, yielded: yielded + stats.yielded },
    },
  }
}
