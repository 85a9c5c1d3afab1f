import { SyncError, type SyncSignal, type SyncRef } from '../contract/index.ts'
import type { ToolContext } from './tool-context.ts'
import { objectSchema, isoTime, NAME_SCHEMA, type McpTool } from './tool.ts'

const SIGNAL_DESCRIPTIONS: Record<SyncSignal['kind'], string> = {
  trigger: 'Asks for one cycle of a sync now. A running `tidemark start` takes it up.',
  pause: 'Pauses a sync: a running cycle ends after its page in hand, and no other begins until somebody resumes it.',
  resume: 'Lets a paused sync run again.',
}

/** None of them touches rows or state. */
export const writeTools: readonly McpTool[] = (Object.keys(SIGNAL_DESCRIPTIONS) as SyncSignal['kind'][]).map((kind) => ({
  name: kind, writes: true, description: SIGNAL_DESCRIPTIONS[kind],
  inputSchema: objectSchema({ sync: NAME_SCHEMA, worker: { ...NAME_SCHEMA, description: 'Only needed when two workers have a sync of this name.' } }, ['sync']),
  async run(desk, given) {
    const ref = await findSync(desk, given as { sync: string; worker?: string })
    const store = await desk.openOrCreateStore()
    await store.signalSync(ref, { kind, actor: desk.actor, at: desk.clock.now() })
    const { paused, triggeredAt } = await store.readCheckpoint(ref)
    return { ...ref, paused, triggeredAt: isoTime(triggeredAt) }
  },
}))

async function findSync(desk: ToolContext, { sync, worker }: { sync: string; worker?: string }): Promise<SyncRef> {
  const kept = (await (await desk.openExistingStore())?.syncs()) ?? []
  const all = new Map([...desk.syncs.map(({ plan }) => ({ worker: plan.worker, sync: plan.sync })), ...kept].map((ref) => [`${ref.worker}/${ref.sync}`, { worker: ref.worker, sync: ref.sync }]))
  const found = [...all.values()].filter((ref) => ref.sync === sync && (worker === undefined || ref.worker === worker))
  if (found.length === 1) return found[0]!
  if (found.length === 0) throw new SyncError('SYNC_UNKNOWN', `There is no sync ${JSON.stringify(sync)}; there are: ${[...all.keys()].slice(0, 50).join(', ') || 'none'}.`)
  throw new SyncError('ARGUMENT_INVALID', `There is more than one: ${found.map((ref) => `${ref.worker}/${ref.sync}`).join(', ')}. Name the worker.`)
}
