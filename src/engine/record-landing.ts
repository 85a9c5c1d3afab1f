import type { CycleContext } from './cycle-context.ts'
import { toPageTimes, type OpenCycle } from './open-cycle.ts'
import type { PageCommit } from './page-commit.ts'
import type { PageReader } from './page-reader.ts'

/** Legal only after the page is committed: updates the cycle, and reports the page to logs, telemetry and the caller. */
export function recordLanding(
  { options, counters, trace }: CycleContext,
  open: OpenCycle,
  reader: PageReader,
  { read, transition, drift, landed }: PageCommit,
): void {
  const { checked, prepared } = read
  const text = open.driftDetector.formatMessages(drift)
  if (text !== null) open.log.warn('records differ from earlier ones; they were committed', { drift: text })
  if (landed.drift !== undefined)
    open.log.warn('some values do not fit their columns; the records were committed', {
      drift: landed.drift.join('; '),
    })
  for (const { database, key, code, message } of landed.refused ?? [])
    open.log.warn('a record does not fit its columns and was quarantined', { database, key, code, message })
  open.driftDetector.recordLanded(prepared.columns, drift, landed.drift)
  reader.recordLanded(read)
  counters.addPage(landed.counts)
  trace.endLandedPage(read.trace, checked.changes.length, landed.counts)
  open.headSequence = landed.headSequence
  if (transition.kind === 'continue') open.tidemark = open.tidemark.withPage(open.inflight.mode, toPageTimes(read))
  open.endReason = open.toEndReason(checked)
  if (transition.kind === 'complete')
    open.tidemark = open.tidemark.complete(open.tidemark.applyHold(transition.tidemark))
  open.scope = open.mergeScope(checked.scope)
  open.checkpoint = { ...open.checkpoint, version: landed.version }
  options.onProgress?.({
    kind: 'landed',
    cycle: transition.cycle,
    page: transition.page,
    counts: { ...counters.counts },
    tidemark: open.tidemark.current,
    headSequence: landed.headSequence,
    ...(checked.left !== null && { left: checked.left }),
  })
}
