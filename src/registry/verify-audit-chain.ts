import { isSyncError, type Store, type SyncRef } from '../contract/index.ts'
import { hashLink, serializeLink } from './audit-chain.ts'

export interface AuditChainReport {
  readonly intact: boolean
  readonly entries: number
  /** The hash of the newest entry. Record it elsewhere to verify later that the audit log up to it is unchanged. */
  readonly head: string
  /** The first entry that does not follow from the one before it. */
  readonly brokenAt: { readonly id: number; readonly why: string } | null
  /** Whether the expected head is in the audit log; null if none was given. */
  readonly holdsExpected: boolean | null
  /** Syncs whose stored state contradicts the audit log, or cannot be opened. */
  readonly states: ReadonlyArray<SyncRef & { readonly why: string }>
}

const PAGE_SIZE = 1_000

/** Recomputes the hash chain of a tenant's audit log. `expect`: an earlier head, which must still be in it. */
export async function verifyAuditChain(store: Store, expect?: string): Promise<AuditChainReport> {
  let [previous, entries, after] = ['', 0, 0]
  let holdsExpected = expect === undefined ? null : expect === ''
  const refs = new Map<string, SyncRef>()
  const buildReport = async (brokenAt: AuditChainReport['brokenAt'], head: string): Promise<AuditChainReport> => {
    const states = await findStateFaults(store, refs)
    return {
      intact: brokenAt === null && holdsExpected !== false && states.length === 0,
      entries,
      head,
      brokenAt,
      holdsExpected,
      states,
    }
  }
  for (;;) {
    const page = await store.auditChain({ after, limit: PAGE_SIZE })
    for (const entry of page.entries) {
      after = entry.id
      if (entry.worker !== null && entry.sync !== null)
        refs.set(JSON.stringify([entry.worker, entry.sync]), { worker: entry.worker, sync: entry.sync })
      // Entries from before the chain existed have no hash. If a later entry were made to look so, the next one would
      // not follow.
      if (entries === 0 && entry.hash === '') continue
      const link = hashLink(previous, serializeLink(entry))
      if (link !== entry.hash)
        return await buildReport({ id: entry.id, why: 'This entry or the one before it was changed.' }, previous)
      if (link === expect) holdsExpected = true
      previous = link
      entries++
    }
    if (page.entries.length === PAGE_SIZE) continue
    // Other processes may have added entries since the page was read, so this may not be the end yet.
    const now = await store.auditChain({ after, limit: 1 })
    if (now.entries.length > 0) continue
    if (now.head !== previous || now.count !== entries)
      return await buildReport({ id: after, why: `${now.count - entries} entries are missing after it.` }, previous)
    return await buildReport(null, previous)
  }
}

/** A partition whose state cannot be opened fails. An older state of a partition is not detected, and loses nothing. */
async function openPartitions(store: Store, ref: SyncRef): Promise<void> {
  for (let after: string | undefined; ;) {
    const page = await store.partitions(ref, { limit: PAGE_SIZE, ...(after !== undefined && { after }) })
    if (page.length < PAGE_SIZE) return
    after = page.at(-1)?.key
  }
}

/** The store compares each state with the audit log on read, including syncs whose row is missing. */
async function findStateFaults(store: Store, refs: Map<string, SyncRef>): Promise<AuditChainReport['states']> {
  for (const ref of await store.syncs()) refs.set(JSON.stringify([ref.worker, ref.sync]), ref)
  const faults: Array<SyncRef & { why: string }> = []
  for (const ref of refs.values()) {
    try {
      await store.readCheckpoint(ref)
      await openPartitions(store, ref)
    } catch (error) {
      if (!isSyncError(error) || (error.code !== 'STATE_ROLLED_BACK' && error.code !== 'STATE_UNREADABLE')) throw error
      faults.push({ ...ref, why: error.message })
    }
  }
  return faults
}
