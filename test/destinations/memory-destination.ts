import {
  SCALAR_TYPES,
  SyncError,
  type Destination,
  type DestinationBatch,
  type DestinationChange,
  type DestinationPosition,
  type JsonObject,
  type TokenStep,
} from '../../src/contract/index.ts'
import { isNextStep } from '../../src/destinations/kit/is-next-step.ts'
import type { DestinationHarness, StoredChild, StoredRow } from '../../src/testing/destination-cases/harness.ts'
import { parseJson } from '../../src/values/json.ts'

/** A mistake that the suite must find. */
export type Mistake =
  | 'token after the rows'
  | 'token before the rows'
  | 'no check of the token'
  | 'no check of the epoch'
  | 'deletes ignored'
  | 'load over the live rows'
  | 'new fields dropped'
  | 'large numbers rounded'
  | 'first version wins'
  | 'old children stay'
  | 'children of a deleted row stay'
  | 'children outlive their table'

interface Table {
  mode: string
  rows: DestinationChange[]
  /** Children by field. */
  children: Record<string, StoredChild[]>
}

type Tables = Record<'live' | 'loading', Table | null>

/** A destination in memory, whose statements can be interrupted. */
export function openMemoryDestination(mistake: Mistake | null = null): DestinationHarness {
  let stored = {
    tables: { live: null, loading: null } as Tables,
    position: { live: null, loading: null } as DestinationPosition,
  }
  let fault: { statement: number } | 'commit' | null = null
  let happened = false
  const fail = (code: 'DESTINATION_UNAVAILABLE' | 'COMMIT_UNKNOWN'): never => {
    fault = null
    happened = true
    throw new SyncError(code, 'The connection broke.')
  }
  const statement = (): void => {
    if (fault === null || fault === 'commit') return
    if (fault.statement-- === 0) fail('DESTINATION_UNAVAILABLE')
  }
  const apply = async (batch: DestinationBatch, step: TokenStep): Promise<'applied' | 'refused'> => {
    statement()
    const isAllowed =
      mistake === 'no check of the token' ||
      isNextStep(
        mistake === 'no check of the epoch'
          ? {
              live: stored.position.live && { ...stored.position.live, epoch: 0 },
              loading: stored.position.loading && { ...stored.position.loading, epoch: 0 },
            }
          : stored.position,
        batch,
        step,
      )
    if (!isAllowed) return 'refused'
    const stale = batch.isFirst ? null : stored.tables[batch.target]
    const members = batch.schema.children ?? []
    if (stale !== null && Object.keys(stale.children).join() !== members.join())
      throw new SyncError('DESTINATION_INVALID', 'The table was loaded with other child tables.')
    const next = structuredClone(stored)
    const commit = (): void => void (stored = structuredClone(next))
    const { target } = batch
    if (mistake === 'token before the rows') {
      next.position = { ...next.position, [target]: step.next }
      if (!batch.isLast && !batch.isFirst) commit()
    }
    if (batch.isFirst) {
      statement()
      const old = mistake === 'load over the live rows' ? next.tables.live : null
      next.tables.loading = {
        mode: batch.schema.mode,
        rows: old?.rows ?? [],
        children: Object.fromEntries((batch.schema.children ?? []).map((member) => [member, []])),
      }
      if (mistake === 'load over the live rows') next.tables.live = next.tables.loading
    }
    statement()
    const table = next.tables[target]
    if (table !== null) write(table, batch, mistake)
    if (mistake === 'token after the rows' && !batch.isLast && !batch.isFirst) commit()
    statement()
    next.position = { ...next.position, [target]: step.next }
    if (batch.isLast) {
      statement()
      if (mistake === 'children outlive their table' && next.tables.loading !== null)
        next.tables.loading.children = { ...next.tables.live?.children, ...next.tables.loading.children }
      next.tables = { live: next.tables.loading, loading: null }
      next.position = { live: step.next, loading: null }
    }
    statement()
    commit()
    if (fault === 'commit') fail('COMMIT_UNKNOWN')
    return 'applied'
  }
  const destination: Destination = {
    kind: 'memory',
    location: 'memory',
    supports: {
      modes: ['mirror', 'append', 'history'],
      commit: 'transaction',
      mergeByKey: true,
      addColumn: true,
      swap: true,
      children: true,
      types: SCALAR_TYPES,
    },
    open: async () => ({
      position: async () => stored.position,
      prepare: async () => {},
      apply,
      remove: async () =>
        void (stored = { tables: { live: null, loading: null }, position: { live: null, loading: null } }),
      close: async () => {},
    }),
  }
  return {
    destination,
    rows: async () => toRows(stored.tables.live),
    children: async (_, member) =>
      (stored.tables.live?.children[member] ?? []).toSorted((a, b) =>
        a.parentKey === b.parentKey ? a.index - b.index : a.parentKey < b.parentKey ? -1 : 1,
      ),
    interrupt: (given) => {
      happened = false
      fault = given === 'commit' ? given : { ...given }
      return () => {
        fault = null
        return happened
      }
    },
    backUp: async () => {
      const copy = structuredClone(stored)
      return async () => void (stored = structuredClone(copy))
    },
    close: async () => {},
  }
}

function write(table: Table, { schema, changes, target }: DestinationBatch, mistake: Mistake | null): void {
  for (const change of changes) {
    if (schema.mode !== 'mirror') {
      table.rows.push(change)
      continue
    }
    const at = table.rows.findIndex(({ key }) => key === change.key)
    if (at >= 0 && (mistake !== 'deletes ignored' || change.record !== null)) {
      if (mistake === 'first version wins' && change.record !== null && target === 'live') continue
      table.rows.splice(at, 1)
    }
    for (const member of schema.children ?? []) moveChildren(table, change, member, mistake)
    if (change.record === null) continue
    const moved = (schema.children ?? []).filter((member) => objectsOf(change.record?.[member]).length > 0)
    const rest = Object.fromEntries(Object.entries(change.record).filter(([name]) => !moved.includes(name)))
    const record =
      mistake === 'new fields dropped' && target === 'live'
        ? Object.fromEntries(Object.entries(rest).filter(([name]) => name === 'n'))
        : rest
    table.rows.push({ ...change, record })
  }
  if (mistake === 'large numbers rounded')
    table.rows = table.rows.map((row) => ({
      ...row,
      record: JSON.parse(
        JSON.stringify(row.record, (_, value: unknown) => (typeof value === 'bigint' ? Number(value) : value)),
      ) as typeof row.record,
    }))
}

function moveChildren(table: Table, { key, record }: DestinationChange, member: string, mistake: Mistake | null): void {
  const isKept =
    mistake === 'old children stay' ? record !== null : mistake === 'children of a deleted row stay' && record === null
  const others = (table.children[member] ?? []).filter(({ parentKey }) => isKept || parentKey !== key)
  const own = objectsOf(record?.[member]).map((child, index) => ({ parentKey: key, index, record: child }))
  table.children[member] = [...others, ...own]
}

function objectsOf(value: unknown): JsonObject[] {
  const isList =
    Array.isArray(value) && value.every((one) => typeof one === 'object' && one !== null && !Array.isArray(one))
  return isList ? (value as JsonObject[]) : []
}

function toRows(table: Table | null): StoredRow[] {
  if (table === null) return []
  const { mode, rows } = table
  if (mode === 'mirror') return rows.map(({ key, sequence, record }) => ({ key, sequence, record }))
  if (mode === 'append')
    return rows.map(({ key, sequence, action, text }) => ({
      key,
      sequence,
      action,
      record: text === null ? null : (parseJson(text) as StoredRow['record']),
    }))
  return rows.flatMap(({ key, sequence, record }) =>
    record === null
      ? []
      : [{ key, sequence, isCurrent: !rows.some((row) => row.key === key && row.sequence > sequence), record }],
  )
}
