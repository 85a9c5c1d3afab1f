import { SyncError, type SyncSignal, type SyncRef } from '../contract/index.ts'
import type { ToolContext } from './tool-context.ts'
import { objectSchema, isoTime, NAME_SCHEMA, type McpTool } from './tool.ts'

const SIGNAL_DESCRIPTIONS: Record<SyncSignal['kind'], string> = {
  trigger: 'Requests one cycle of a sync now. A running `tidemark start` picks it up.',
  pause: 'Pauses a sync. A running cycle ends after the current page, and no cycle starts until the sync is resumed.',
  resume: 'Resumes a paused sync.',
}

/** None of these tools changes rows or state. */
export const writeTools: readonly McpTool[] = (Object.keys(SIGNAL_DESCRIPTIONS) as SyncSignal['kind'][]).map(
  (kind) => ({
    name: kind,
    writes: true,
    description: SIGNAL_DESCRIPTIONS[kind],
    inputSchema: objectSchema(
      {
        sync: NAME_SCHEMA,
        worker: { ...NAME_SCHEMA, description: 'Required only if two workers have a sync with this name.' },
      },
      ['sync'],
    ),
    async run(context, given) {
      const ref = await findSync(context, given as { sync: string; worker?: string })
      const store = await context.openOrCreateStore()
      await store.signalSync(ref, { kind, actor: context.actor, at: context.clock.now() })
      const { paused, triggeredAt } = await store.readCheckpoint(ref)
      return { ...ref, paused, triggeredAt: isoTime(triggeredAt) }
    },
  }),
)

async function findSync(context: ToolContext, { sync, worker }: { sync: string; worker?: string }): Promise<SyncRef> {
  const kept = (await (await context.openExistingStore())?.syncs()) ?? []
  const all = new Map(
    [...context.syncs.map(({ plan }) => ({ worker: plan.worker, sync: plan.sync })), ...kept].map((ref) => [
      `${ref.worker}/${ref.sync}`,
      { worker: ref.worker, sync: ref.sync },
    ]),
  )
  const found = [...all.values()].filter((ref) => ref.sync === sync && (worker === undefined || ref.worker === worker))
  const [first] = found
  if (first !== undefined && found.length === 1) return first
  if (first === undefined)
    throw new SyncError(
      'SYNC_UNKNOWN',
      `Unknown sync ${JSON.stringify(sync)}. The syncs are: ${[...all.keys()].slice(0, 50).join(', ') || 'none'}.`,
    )
  throw new SyncError(
    'ARGUMENT_INVALID',
    `Several workers have a sync with this name: ${found.map((ref) => `${ref.worker}/${ref.sync}`).join(', ')}. Set \`worker\`.`,
  )
}
