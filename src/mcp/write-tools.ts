import { SyncError, type Signal, type SyncRef } from '../contract/index.ts'
import type { Desk } from './desk.ts'
import { input, iso, NAME, type Tool } from './tool.ts'

const DESCRIPTIONS: Record<Signal['kind'], string> = {
  trigger: 'Asks for one cycle of a sync now. A running `tidemark start` takes it up.',
  pause: 'Pauses a sync: a running cycle ends after its page in hand, and no other begins until somebody resumes it.',
  resume: 'Lets a paused sync run again.',
}

/** None of them touches rows or state. */
export const writeTools: readonly Tool[] = (Object.keys(DESCRIPTIONS) as Signal['kind'][]).map((kind) => ({
  name: kind, writes: true, description: DESCRIPTIONS[kind],
  input: input({ sync: NAME, worker: { ...NAME, description: 'Only needed when two workers have a sync of this name.' } }, ['sync']),
  async run(desk, given) {
    const ref = await findSync(desk, given as { sync: string; worker?: string })
    const store = await desk.writing()
    await store.signal(ref, { kind, actor: desk.actor, at: desk.clock.now() })
    const { paused, triggeredAt } = await store.read(ref)
    return { ...ref, paused, triggeredAt: iso(triggeredAt) }
  },
}))

async function findSync(desk: Desk, { sync, worker }: { sync: string; worker?: string }): Promise<SyncRef> {
  const kept = (await (await desk.reading())?.syncs()) ?? []
  const all = new Map([...desk.syncs.map(({ plan }) => ({ worker: plan.worker, sync: plan.sync })), ...kept].map((ref) => [`${ref.worker}/${ref.sync}`, { worker: ref.worker, sync: ref.sync }]))
  const found = [...all.values()].filter((ref) => ref.sync === sync && (worker === undefined || ref.worker === worker))
  if (found.length === 1) return found[0]!
  if (found.length === 0) throw new SyncError('SYNC_UNKNOWN', `There is no sync ${JSON.stringify(sync)}; there are: ${[...all.keys()].slice(0, 50).join(', ') || 'none'}.`)
  throw new SyncError('ARGUMENT_INVALID', `There is more than one: ${found.map((ref) => `${ref.worker}/${ref.sync}`).join(', ')}. Name the worker.`)
}
