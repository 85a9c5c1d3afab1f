import { isSyncError, type Store, type SyncRef } from '../contract/index.ts'
import { hashLink, serializeLink } from './audit-chain.ts'

export interface AuditChainReport {
  readonly intact: boolean
  readonly entries: number
  /** Of the newest entry. Whoever writes it down elsewhere can tell later whether the trail before it is still the same. */
  readonly head: string
  /** The first entry that does not follow from the one before it. */
  readonly brokenAt: { readonly id: number; readonly why: string } | null
  /** Whether the head that was expected is in the trail; null when none was. */
  readonly holdsExpected: boolean | null
  /** Syncs whose stored state contradicts the audit log, or cannot be opened. */
  readonly states: ReadonlyArray<SyncRef & { readonly why: string }>
}

const PAGE_SIZE = 1_000

/** Goes through the whole trail of a tenant and joins its links anew. `expect`: a head seen before, which must still be in it. */
export async function verifyAuditChain(store: Store, expect?: string): Promise<AuditChainReport> {
  let [previous, entries, after] = ['', 0, 0]
  let holdsExpected = expect === undefined ? null : expect === ''
  const refs = new Map<string, SyncRef>()
  const verdict = async (brokenAt: AuditChainReport['brokenAt'], head: string): Promise<AuditChainReport> => {
    const states = await findStateFaults(store, refs)
    return { intact: brokenAt === null && holdsExpected !== false && states.length === 0, entries, head, brokenAt, holdsExpected, states }
  }
  for (;;) {
    const page = await store.auditChain({ after, limit: PAGE_SIZE })
    for (const entry of page.entries) {
      after = entry.id
      if (entry.worker !== null && entry.sync !== null) refs.set(JSON.stringify([entry.worker, entry.sync]), { worker: entry.worker, sync: entry.sync })
      // From before there was a chain. Were a later one made to look so, the next would no longer follow.
      if (entries === 0 && entry.hash === '') continue
      const link = hashLink(previous, serializeLink(entry))
      if (link !== entry.hash) return await verdict({ id: entry.id, why: 'It was changed, or the one before it is another than it was.' }, previous)
      if (link === expect) holdsExpected = true
      previous = link
      entries++
    }
    if (page.entries.length === PAGE_SIZE) continue
    // Others may have added some since the page was read: then the end is not the end yet.
    const now = await store.auditChain({ after, limit: 1 })
    if (now.entries.length > 0) continue
    if (now.head !== previous || now.count !== entries) return await verdict({ id: after, why: `${now.count - entries} entries are missing after it.` }, previous)
    return await verdict(null, previous)
  }
}

/** Each state is compared with the audit log by the store that reads it, also of syncs whose row is gone. */
async function findStateFaults(store: Store, refs: Map<string, SyncRef>): Promise<AuditChainReport['states']> {
  for (const ref of await store.syncs()) refs.set(JSON.stringify([ref.worker, ref.sync]), ref)
  const faults: Array<SyncRef & { why: string }> = []
  for (const ref of refs.values()) {
    try {
      await store.readCheckpoint(ref)
    } catch (error) {
      if (!isSyncError(error) || (error.code !== 'STATE_ROLLED_BACK' && error.code !== 'STATE_UNREADABLE')) throw error
      faults.push({ ...ref, why: error.message })
    }
  }
  return faults
}
