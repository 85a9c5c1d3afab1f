import type { Store } from '../contract/index.ts'
import type { DeclaredSync } from './declared-sync.ts'
import { markOf, RECENT_CYCLES, type Standing } from './due.ts'

/** Where a sync stands. One call while nothing moved since `known`, else two. */
export async function look(store: Store, { plan, schedule }: DeclaredSync, known: Standing | null): Promise<Standing> {
  const ref = { worker: plan.worker, sync: plan.sync }
  const checkpoint = await store.read(ref)
  if (known !== null && markOf(known.checkpoint) === markOf(checkpoint)) return { checkpoint, recent: known.recent }
  return { checkpoint, recent: await store.cycles(ref, { limit: schedule.kind === 'continuous' ? RECENT_CYCLES : 1 }) }
}
