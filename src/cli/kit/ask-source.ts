import type { SyncContext } from '../../contract/index.ts'
import { DEFAULT_LIMITS, DEFAULT_SWEEP, type SyncPlan } from '../../engine/sync-plan.ts'
import { createLog } from '../../platform/log.ts'
import { callSource } from '../../runner/call-source.ts'
import type { Cli } from '../cli.ts'
import { createRuntime } from './create-runtime.ts'
import { openExistingStore } from './open-existing-store.ts'
import type { Target } from './target.ts'
import { openTargetPauses } from './target-pauses.ts'

/** Taps and large services take longer to list their streams than to answer for a page. */
const ASK_DEADLINE_MS = 600_000

/** Options of `askSource`. */
export interface AskOptions {
  readonly worker: string
  /** The name of the verb. */
  readonly verb: string
  /** The sync whose connection and pacers are used. */
  readonly plan?: SyncPlan
  readonly extraMs?: number
}

/** Calls a source once, after any active rate-limit pause. A pause that the source requests is stored. */
export async function askSource<Answer>(
  cli: Cli,
  target: Target,
  { worker, verb, plan: given, extraMs = 0 }: AskOptions,
  ask: (context: SyncContext) => Promise<Answer>,
): Promise<Answer> {
  const stopping = cli.listenForStop()
  const plan: SyncPlan = {
    ...(given ?? {
      worker,
      sync: verb,
      owner: verb,
      mode: 'replace',
      databases: [],
      pacers: [],
      scope: null,
      upstreamToleranceMs: 0,
      sweep: DEFAULT_SWEEP,
      execute: async () => ({ changes: [], hasMore: false }),
    }),
    limits: { ...(given?.limits ?? DEFAULT_LIMITS), deadlineMs: ASK_DEADLINE_MS + extraMs },
  }
  const { ports, ...runtime } = await createRuntime(cli, target)
  const store = plan.connection == null ? null : await openExistingStore(target)
  const pauses = openTargetPauses(target)
  try {
    const options = { tenant: target.tenant, plan, store, pacers: {}, pauses }
    return await callSource(
      { ...runtime, ports: { ...ports, log: createLog({ level: 'silent' }) } },
      stopping,
      options,
      ask,
    )
  } finally {
    await pauses.close()
    await store?.close()
  }
}
