import type { Checkpoint, SyncSignal } from '../../contract/index.ts'
import { systemClock } from '../../platform/clock.ts'
import { actorName } from './actor.ts'
import type { Cli } from '../cli.ts'
import { findSync } from './find-sync.ts'
import { isoTime } from './json-document.ts'
import { openExistingStore } from './open-existing-store.ts'
import { printTarget, openTargetStore, targetDocument, loadWorkerTarget, type TargetFlags } from './target.ts'

/** Pauses, resumes or triggers a sync. None of these changes its state. */
export async function sendSignal(cli: Cli, name: string, flags: TargetFlags, kind: SyncSignal['kind']): Promise<void> {
  const target = await loadWorkerTarget(cli, flags)
  printTarget(cli, target)
  // Resolves the name first, so that a wrong name does not create a store.
  const existing = await openExistingStore(target)
  const ref = await findSync(target, existing, name).finally(() => existing?.close())
  const store = await openTargetStore(target)
  try {
    await store.signalSync(ref, { kind, actor: actorName(), at: systemClock.now() })
    const checkpoint = await store.readCheckpoint(ref)
    if (cli.terminal.json) {
      cli.terminal.printDocument({
        ...targetDocument(target),
        sync: ref.sync,
        signal: kind,
        paused: checkpoint.paused,
        triggeredAt: isoTime(checkpoint.triggeredAt),
      })
    } else cli.terminal.print(SIGNAL_MESSAGES[kind](ref.sync, checkpoint))
  } finally {
    await store.close()
  }
}

const SIGNAL_MESSAGES: Record<SyncSignal['kind'], (sync: string, checkpoint: Checkpoint) => string> = {
  pause: (sync, { heldBy }) =>
    `Paused ${sync}.${heldBy === null ? '' : ` ${heldBy} stops after the current page.`} Resume it with \`tidemark resume ${sync}\`.`,
  resume: (sync, { inflight }) =>
    `Resumed ${sync}. It continues ${inflight === null ? 'on schedule' : `with cycle ${inflight.cycle}, after page ${inflight.page}`}.`,
  trigger: (sync, { paused }) =>
    paused
      ? `Triggered ${sync}, but it is paused. Run \`tidemark resume ${sync}\` to let it start.`
      : `Triggered ${sync}. A running \`tidemark start\` picks it up; otherwise run \`tidemark run ${sync}\`.`,
}
