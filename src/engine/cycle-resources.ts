import { setMaxListeners } from 'node:events'
import { SyncError } from '../contract/index.ts'
import { AccountPauses } from './account-pauses.ts'
import type { CycleContext } from './cycle-context.ts'
import { startLeaseHeartbeat } from './lease-heartbeat.ts'
import { Pacer } from './pacer.ts'
import { PageReader } from './page-reader.ts'
import { PageTransformer } from './page-transformer.ts'
import { SourceLookups } from './source-lookups.ts'
import { readStoredPartitions } from './stored-partitions.ts'

/** The parts of one run that use the source and the lease. */
export interface CycleResources {
  readonly reader: PageReader
  readonly lookups: SourceLookups
  readonly pauses: AccountPauses
  /** Stops the heartbeat and aborts the pages that are still being read. */
  close(): void
}

export function openCycleResources({
  plan,
  options,
  retryingStore,
  counters,
  trace,
  lease,
  startedAt,
}: CycleContext): CycleResources {
  const { store, ports, signal, pauses: pauseStore = store } = options
  const { worker, sync, limits, pacers } = plan
  const cycleAbort = new AbortController()
  // Pages whose listeners remain, such as an unfinished request, stay linked until the cycle ends.
  setMaxListeners(0, cycleAbort.signal)
  const stop = (): void => cycleAbort.abort(new SyncError('CANCELLED', `${sync} was stopped.`))
  if (signal?.aborted === true) stop()
  signal?.addEventListener('abort', stop, { once: true })
  const heartbeat = startLeaseHeartbeat({
    store,
    clock: ports.clock,
    lease,
    ttlMs: limits.leaseTtlMs,
    requestedAt: startedAt,
    cycleAbort,
  })
  const pauses = new AccountPauses(plan, ports, {
    recordPause: (request) => retryingStore.call(() => pauseStore.recordPause(request)),
    pauses: (query) => retryingStore.call(() => pauseStore.pauses(query)),
  })
  const pacer = new Pacer({
    ports,
    signal: cycleAbort.signal,
    plans: pacers,
    takeSlots: (request) => retryingStore.call(() => store.takeSlots({ worker, ...request })),
  })
  const transformer = PageTransformer.create(plan, store, () => ports.clock.now())
  const reader = new PageReader({
    plan,
    options,
    pacer,
    pauses,
    heartbeat,
    partitions: readStoredPartitions(retryingStore, { worker, sync }),
    cycleSignal: cycleAbort.signal,
    counters,
    trace,
    transformer,
  })
  return {
    reader,
    lookups: new SourceLookups(plan, reader, transformer, ports.log),
    pauses,
    close: () => {
      heartbeat.stop()
      signal?.removeEventListener('abort', stop)
      cycleAbort.abort(new SyncError('CANCELLED', 'The cycle is over.'))
    },
  }
}
