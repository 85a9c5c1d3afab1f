import type { Checkpoint, Signal } from '../contract/index.ts'
import { systemClock } from '../platform/clock.ts'
import { actorName } from './actor.ts'
import type { Cli } from './cli.ts'
import { findSync } from './find-sync.ts'
import { isoTime } from './json-document.ts'
import { openForReading } from './open-for-reading.ts'
import { announce, openTargetStore, targetDocument, workerTarget, type TargetFlags } from './target.ts'

/** Pausing, resuming and asking for a run: none of them touches state. */
export async function sendSignal(cli: Cli, name: string, flags: TargetFlags, kind: Signal['kind']): Promise<void> {
  const target = await workerTarget(cli, flags)
  announce(cli, target)
  // Looked up before the store is made: a wrong name must not leave one behind.
  const known = await openForReading(target)
  const ref = await findSync(target, known, name).finally(() => known?.close())
  const store = await openTargetStore(target)
  try {
    await store.signal(ref, { kind, actor: actorName(), at: systemClock.now() })
    const checkpoint = await store.read(ref)
    if (cli.terminal.json) {
      cli.terminal.document({ ...targetDocument(target), sync: ref.sync, signal: kind, paused: checkpoint.paused, triggeredAt: isoTime(checkpoint.triggeredAt) })
    } else cli.terminal.print(SAID[kind](ref.sync, checkpoint))
  } finally {
    await store.close()
  }
}

const SAID: Record<Signal['kind'], (sync: string, checkpoint: Checkpoint) => string> = {
  pause: (sync, { heldBy }) => `${sync} is paused.${heldBy === null ? '' : ` ${heldBy} stops after its page in hand.`} It goes on with \`tidemark resume ${sync}\`.`,
  resume: (sync, { inflight }) => `${sync} goes on${inflight === null ? ' on schedule' : ` with cycle ${inflight.cycle}, after page ${inflight.page}`}.`,
  trigger: (sync, { paused }) => paused
    ? `${sync} was asked to run, and will when it is resumed: it is paused. Run \`tidemark resume ${sync}\`.`
    : `${sync} was asked to run. A running \`tidemark start\` takes it up; without one, \`tidemark run ${sync}\` does.`,
}
