import { expect } from 'vitest'
import type { LogEntry, Store, SyncRef } from '../../src/contract/index.ts'

const ALL = 10_000_000

/** The state that must not depend on interruptions: everything except clock values and the number of retries. */
export interface StoreFacts {
  readonly position: number
  readonly feed: ReadonlyArray<Omit<LogEntry, 'committedAt'>>
  readonly rows: Readonly<Record<string, ReadonlyArray<readonly [key: string, text: string, sequence: number]>>>
  readonly syncs: readonly unknown[]
  readonly cycles: readonly unknown[]
}

/** Reads a whole store, and checks the invariants that hold at any time. */
export async function readStoreFacts(store: Store): Promise<StoreFacts> {
  const position = await store.headSequence()
  const entries = await store.changes({ after: 0, limit: ALL })
  const databases = await store.databases()
  const rows: Record<string, Array<[string, string, number]>> = {}
  for (const { name } of databases)
    rows[name] = (await store.rows({ database: name, limit: ALL })).map(({ key, text, sequence }) => [
      key,
      text,
      sequence,
    ])
  checkFeed(entries, position)
  // Invariant 8: the replayed feed equals the table.
  expect(replay(entries)).toEqual(Object.fromEntries(Object.entries(rows).filter(([, landed]) => landed.length > 0)))

  const refs = await store.syncs()
  const cycles = (await store.cycles(null, { limit: ALL })).toReversed()
  // A number may be lost with the transaction that took it; the order stays.
  const ranks = new Map(cycles.map(({ cycle }, index) => [cycle, index + 1]))
  const syncs = []
  for (const ref of refs) syncs.push(await readSync(store, ref, ranks))
  return {
    position,
    feed: entries.map(({ committedAt: _committedAt, cycle, ...entry }) => ({ ...entry, cycle: ranks.get(cycle)! })),
    rows,
    syncs,
    cycles: cycles.map(({ worker, sync, mode, pages, counts, startSequence }) => ({
      worker,
      sync,
      mode,
      pages,
      counts,
      startSequence,
    })),
  }
}

/** Invariant 7: in commit order, without a gap, and commit times increase. */
function checkFeed(entries: readonly LogEntry[], position: number): void {
  expect(entries.map(({ sequence }) => sequence)).toEqual(Array.from({ length: position }, (_, index) => index + 1))
  for (let i = 1; i < entries.length; i++) {
    const [before, entry] = [entries[i - 1]!, entries[i]!]
    const sameCommit = before.cycle === entry.cycle && before.page === entry.page
    // A sweep commits right after its page, with its own commit time.
    if (sameCommit && entry.action === 'deleted') expect(entry.committedAt - before.committedAt).toBeOneOf([0, 1])
    else if (sameCommit) expect(entry.committedAt).toBe(before.committedAt)
    else expect(entry.committedAt).toBeGreaterThan(before.committedAt)
  }
}

function replay(entries: readonly LogEntry[]): Record<string, Array<[string, string, number]>> {
  const tables = new Map<string, Map<string, [string, string, number]>>()
  for (const { database, key, action, text, sequence } of entries) {
    const table = tables.get(database) ?? new Map<string, [string, string, number]>()
    tables.set(database, table)
    expect(table.has(key), `${action} of ${key} at ${sequence}`).toBe(action !== 'created')
    if (action === 'deleted') table.delete(key)
    else table.set(key, [key, text!, sequence])
  }
  return Object.fromEntries(
    [...tables]
      .filter(([, table]) => table.size > 0)
      .map(([name, table]) => [
        name,
        [...table.values()].toSorted(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
      ]),
  )
}

const HOUR_MS = 3_600_000

async function readSync(store: Store, ref: SyncRef, ranks: ReadonlyMap<number, number>): Promise<unknown> {
  const { version, committed, committedBy, inflight, tidemark, scope } = await store.readCheckpoint(ref)
  const audit = (await store.audit(ref, { limit: ALL })).toReversed()
  // O5, O11: one audit row per version and no version without one.
  expect(audit.filter(({ action }) => action === 'complete').map((entry) => entry.version)).toEqual(
    Array.from({ length: version }, (_, index) => index + 1),
  )
  expect(audit.findLast(({ action }) => action === 'complete')?.state ?? null).toBe(committed)
  return {
    // The tidemark of a listing is the start of its cycle, which differs from run to run; its presence does not.
    ...ref,
    version,
    committed,
    tidemark: tidemark !== null && Date.parse(tidemark) > Date.now() - HOUR_MS ? 'recent' : tidemark,
    scope,
    committedBy: committedBy === null ? null : ranks.get(committedBy),
    inflight: inflight === null ? null : { page: inflight.page, state: inflight.state, mode: inflight.mode },
    audit: audit.map(({ action, state, cycle }) => ({
      action,
      state,
      cycle: cycle === null ? null : ranks.get(cycle),
    })),
  }
}
