import type { Store } from '../../contract/index.ts'
import { NOOP_PAUSE_STORE, type PauseStore } from '../../engine/account-pauses.ts'
import { openExistingStore } from './open-existing-store.ts'
import { openTargetStore, type Target } from './target.ts'

export interface TargetPauses extends PauseStore {
  close(): Promise<void>
}

/**
 * The rate-limit pauses of a target, for commands that write nothing else. The store is created only to record a
 * pause. If it cannot be opened, pauses are not recorded and the command continues.
 */
export function openTargetPauses(target: Target): TargetPauses {
  let reading: Promise<Store | null> | undefined
  let writing: Promise<Store | null> | undefined
  const read = (): Promise<Store | null> => (reading ??= openExistingStore(target).catch(() => null))
  const write = async (): Promise<Store | null> =>
    (await read()) ?? (await (writing ??= openTargetStore(target).catch(() => null)))
  return {
    recordPause: async (request) => ((await write()) ?? NOOP_PAUSE_STORE).recordPause(request),
    pauses: async (query) => ((await writing) ?? (await read()) ?? NOOP_PAUSE_STORE).pauses(query),
    close: async () => {
      for (const store of [await reading, await writing]) await store?.close()
    },
  }
}
