import type { Checkpoint, SyncSignal } from '../../contract/index.ts'
import { systemClock } from '../../platform/clock.ts'
import { actorName } from './actor.ts'
import type { Cli } from '../cli.ts'
import { findSync } from './find-sync.ts'
import { isoTime } from './json-document.ts'
import { openExistingStore } from './open-existing-store.ts'
import { printTarget, openTargetStore, targetDocument, loadWorkerTarget, type TargetFlags } from './target.ts'

/** Pausing, resuming and asking for a run: none of them touches state. */
export async function sendSignal(cli: Cli, name: string, flags: TargetFlags, kind: SyncSignal['kind']): Promise<void> {
  const target = await loadWorkerTarget(cli, flags)
  printTarget(cli, target)
  // Looked up before the store is made: a wrong name must not leave one behind.
  const known = await openExistingStore(target)
  const ref = await findSync(target, known, name).finally(() => known?.close())
  const store = await openTargetStore(target)
  try {
    await store.signalSync(ref, { kind, actor: actorName(), at: systemClock.now() })
    const checkpoint = await store.readCheckpoint(ref)
    if (cli.terminal.json) {
      cli.terminal.printDocument({ ...targetDocument(target), sync: ref.sync, signal: kind, paused: checkpoint.paused, triggeredAt: isoTime(checkpoint.triggeredAt) })
    } else cli.terminal.print(SIGNAL_MESSAGES[kind](ref.sync, checkpoint))
  } finally {
    await store.close()
  }
}

const SIGNAL_MESSAGES: Record<SyncSignal['kind'], (sync: string, checkpoint: Checkpoint) => string> = {
  pause: (sync, { heldBy }) => `${sync} is paused.${heldBy === null ? '' : ` ${heldBy} stops after its page in hand.`} It goes on with \`tidemark resume ${sync}\`.`,
  resume: (sync, { inflight }) => `${sync} goes on${inflight === null ? ' on schedule' : ` with cycle ${inflight.cycle}, after page ${inflight.page}`}.`,
  trigger: (sync, { paused }) => paused
    ? `${sync} was asked to run, and will when it is resumed: it is paused. Run \`tidemark resume ${sync}\`.`
    : `${sync} was asked to run. A running \`tidemark start\` takes it up; without one, \`tidemark run ${sync}\` does.`,
}
