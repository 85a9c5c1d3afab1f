import type { LogEntry, Store } from '../../../src/contract/index.ts'
import type { Patch } from './patched-modules.ts'

/** A store that is wrong in one way, and the cases that must catch it. */
export interface Fault {
  /** "A store that …" */
  readonly name: string
  readonly patches?: readonly Patch[]
  wrap?(store: Store): Store
  /** Beginnings of case names. Each of these cases must fail with an assertion of its own. */
  readonly caughtBy: readonly string[]
}

const sqlite = (name: string): string => `stores/sqlite/${name}.ts`
const [COMMIT, LOOKUP, ROWS, SWEEP] = [sqlite('commit'), sqlite('find-rows'), sqlite('rows'), sqlite('sweep')]
const [TABLE, HISTORY, LOG, SYNC_STATUS, READING] = [
  sqlite('table'),
  sqlite('history-retention'),
  sqlite('log'),
  sqlite('sync-status'),
  sqlite('queries'),
]
const DELETES = sqlite('delete-mode')
const DELETE_STATE = 'stores/kit/tables/delete-state.ts'
const kit = (name: string): string => `stores/kit/${name}.ts`
const [REGISTRY, CHECKPOINT, COMMITS, COMPACTION, ERASE_TENANT] = [
  kit('registry'),
  kit('checkpoint'),
  kit('commits'),
  kit('compaction'),
  kit('erase-tenant'),
]
const role = (name: string): string => `stores/kit/roles/${name}.ts`
const [WEBHOOKS, INBOUND, PACERS, QUARANTINE, LEASES] = [
  role('webhooks'),
  role('inbound'),
  role('pacing'),
  role('quarantine'),
  role('leases'),
]
const [RESOLVE, PLAN] = ['stores/kit/resolve-landing.ts', 'stores/kit/plan-landing.ts']

export const faults: readonly Fault[] = [
  // ── sync status ──
  {
    name: 'returns sync status once, and no later changes',
    patches: [{ file: SYNC_STATUS, from: 'if (changeToken === changedSince)', to: 'if (changedSince !== undefined)' }],
    caughtBy: ['any change of a sync since the mark', 'XB2 repeated reads while others write miss no'],
  },
  {
    name: 'returns fewer cycles of a sync than requested',
    patches: [{ file: SYNC_STATUS, from: 'recent, tenantId', to: '1, tenantId' }],
    caughtBy: ['the status of all syncs is read at once'],
  },
  {
    name: 'returns the cycles of a sync oldest first',
    patches: [{ file: SYNC_STATUS, from: 'order by c.cycle_id desc`', to: 'order by c.cycle_id`' }],
    caughtBy: ['the status of all syncs is read at once'],
  },
  {
    name: 'returns the status of all syncs for a query of one',
    patches: [{ file: SYNC_STATUS, from: "'g.connector_id = ? and g.stream_id = ?'", to: "'(true or ? = ?)'" }],
    caughtBy: ['the status of all syncs is read at once'],
  },
  {
    name: 'returns the sync status of other tenants',
    patches: [
      {
        file: SYNC_STATUS,
        from: 'from tidemark_registry g where g.tenant_id = ? and',
        to: 'from tidemark_registry g where ? > 0 and',
      },
    ],
    caughtBy: ['the sync status of a tenant is its own'],
  },

  // ── slots of pacers ──
  {
    name: 'gives one slot to two callers',
    patches: [{ file: PACERS, from: 'Math.max(last + paceMs', to: 'Math.max(last' }],
    caughtBy: ['NX1 an unused pacer gives the next', 'NX1 several slots', 'NX1 of many concurrent callers'],
  },
  {
    name: 'gives slots of a batch to other callers too',
    patches: [{ file: PACERS, from: 'last: first + (count - 1) * paceMs', to: 'last: first' }],
    caughtBy: ['NX1 several slots', 'NX1 of many concurrent callers'],
  },
  {
    name: 'accumulates unused slots',
    patches: [{ file: PACERS, from: 'Math.max(last + paceMs', to: 'Math.min(last + paceMs' }],
    caughtBy: ['NX1 slots are never in the past'],
  },
  {
    name: 'has one budget for all workers',
    wrap: (store) => ({
      ...store,
      takeSlots: (request) => store.takeSlots({ ...request, worker: 'any' }),
      lastSlotTimes: () => store.lastSlotTimes('any'),
    }),
    caughtBy: ['NX1 pacers of another name'],
  },
  {
    name: 'waits for a clock that was set back',
    patches: [{ file: PACERS, from: '(behind > CLOCK_STEP_BACK_MS ? behind : 0)', to: '0' }],
    caughtBy: ['XC26 a clock that was set back'],
  },
  {
    name: 'gives out slots again for a request with an earlier time',
    patches: [{ file: PACERS, from: 'behind > CLOCK_STEP_BACK_MS', to: 'behind > 0' }],
    caughtBy: ['XC26 a clock that was set back'],
  },

  // ── leases and checkpoints ──
  {
    name: 'ignores the epoch',
    patches: [
      {
        file: REGISTRY,
        from: ' && entry.epoch === lease.epoch && entry.holder === lease.holder ? entry : null',
        to: ' ? entry : null',
      },
    ],
    caughtBy: [
      'XB1 invariant 3: the commit of a stale epoch',
      'XA11 a stale epoch cannot begin',
      'a released sync is free at once',
    ],
  },
  {
    name: 'checks only the holder of a lease',
    patches: [{ file: REGISTRY, from: 'entry.epoch === lease.epoch && ', to: '' }],
    caughtBy: ['XA11 a stale epoch cannot begin'],
  },
  {
    name: 'forgets why the source ended a cycle',
    patches: [{ file: CHECKPOINT, from: 'endReason: transition.endReason ?? null', to: 'endReason: null' }],
    caughtBy: ['S22 the end reason of a cycle is'],
  },
  {
    name: 'gives one sync to two runners',
    patches: [{ file: LEASES, from: 'expiresAt > found.now', to: 'expiresAt < found.now' }],
    caughtBy: ['XB1 a free sync is acquired', 'XB1 of many runners'],
  },
  {
    name: 'revokes a lease when it expires',
    wrap(store) {
      const ends = new Map<string, number>()
      return {
        ...store,
        async acquire(ref, request) {
          ends.set(ref.sync, request.at + request.ttlMs)
          return await store.acquire(ref, request)
        },
        commit: async (commit) =>
          commit.at > ends.get(commit.lease.ref.sync)! ? { kind: 'fenced' } : await store.commit(commit),
      }
    },
    caughtBy: ['XA11 expiry alone takes nothing away'],
  },
  {
    name: 'updates the checkpoint in a separate transaction, before the rows',
    patches: [
      {
        file: COMMIT,
        from: '  writeRows(session, plan, tables, {',
        to: `  updateCheckpoint(session, { entry, backfill: lockBackfill(session, commit) }, commit)
  connection.exec('commit')
  connection.exec('begin immediate')
  writeRows(session, plan, tables, {`,
      },
    ],
    caughtBy: [
      'XA3 a crash before any statement of a commit (continue)',
      'XA3 a crash before any statement of a commit (complete)',
      'a commit that fails half-way leaves nothing',
    ],
  },
  {
    name: 'lands the rows in a separate transaction, before the checkpoint',
    patches: [
      {
        file: COMMIT,
        from: '  const version = updateCheckpoint(session, { entry, backfill: lockBackfill(session, commit) }, commit)',
        to: `  connection.exec('commit')
  connection.exec('begin immediate')
  const version = updateCheckpoint(session, { entry, backfill: lockBackfill(session, commit) }, commit)`,
      },
    ],
    caughtBy: [
      'XA3 a crash before any statement of a commit (continue)',
      'XA3 a crash before any statement of a commit (abandon)',
    ],
  },
  {
    name: 'overwrites a checkpoint that changed meanwhile',
    patches: [{ file: CHECKPOINT, from: '  if (entry.version !== version) return false\n', to: '' }],
    caughtBy: ['XB3 a commit on another version'],
  },
  {
    name: 'lands a page twice when the first answer was lost',
    patches: [{ file: CHECKPOINT, from: ' && entry.inflight_page === transition.page - 1', to: '' }],
    caughtBy: ['XB4 after a commit whose answer was lost', 'XB3 a commit on another version'],
  },
  {
    name: 'commits with every page',
    patches: [
      {
        file: CHECKPOINT,
        from: `...required(toInflight(entry), 'The unfinished cycle'), page: transition.page, state: transition.state, scope: transition.scope, tidemark: transition.tidemark, guardState: transition.guardState })
`,
        to: `...required(toInflight(entry), 'The unfinished cycle'), page: transition.page, state: transition.state, scope: transition.scope, tidemark: transition.tidemark, guardState: transition.guardState })
      yield* sql.run('update {registry} set committed = :state where tenant_id = :tenant and sync_id = :sync', { state: transition.state, sync })
`,
      },
    ],
    caughtBy: ['invariant 1: a page lands its rows', 'a fresh begin abandons the unfinished cycle'],
  },
  {
    name: 'loses the guard state',
    patches: [
      {
        file: CHECKPOINT,
        from: 'tidemark: transition.tidemark, guardState: transition.guardState })',
        to: 'tidemark: transition.tidemark })',
      },
    ],
    caughtBy: ['an unfinished cycle is resumed after its last page, by any'],
  },

  {
    name: 'restarts its epochs after an erasure',
    patches: [{ file: ERASE_TENANT, from: 'set epoch = {greatest}(epoch,', to: 'set epoch = {least}(epoch,' }],
    caughtBy: ['Z14 invariant 3: a lease and a claim from before an erasure'],
  },
  {
    name: 'lets a schedule undo an erasure',
    patches: [
      {
        file: REGISTRY,
        from: `  if (automatic) throw createTenantErasedError(sql.tenant)
`,
        to: '',
      },
    ],
    caughtBy: ['Z14 an automatic run does not recreate'],
  },

  {
    name: 'keeps messages for an erased tenant',
    patches: [
      {
        file: INBOUND,
        from: 'if (tenant?.erased === true || tenant?.erased === 1) throw createTenantErasedError(sql.tenant)',
        to: '',
      },
    ],
    caughtBy: ['Z14 an automatic run does not recreate'],
  },

  // ── which version wins ──
  {
    name: 'revives deleted rows',
    patches: [
      {
        file: RESOLVE,
        from: `    if (order < 0 || (row.status === 'deleted' && order === 0 && landing.upstreamAt === row.upstreamAt)) return resolveOlderLanding(row, read)
`,
        to: '',
      },
    ],
    caughtBy: ['XE7 a delete that arrives before its create', 'XE7 invariant 6: a tombstone keeps its time'],
  },
  {
    name: 'lets an older version overwrite a newer row',
    patches: [
      {
        file: RESOLVE,
        from: `  if (order < 0 && !isRead) return resolveOlderLanding(row, read)
  return order > 0 || isLaterRead(row, read) ? 'update'`,
        to: "  return order > 0 || isLaterRead(row, read) ? 'update'",
      },
    ],
    caughtBy: ['invariant 6: an older version never overwrites', 'invariant 6: times are compared to the microsecond'],
  },
  {
    name: 'requires a strictly later time',
    patches: [
      {
        file: RESOLVE,
        from: `  if (order < 0 && !isRead) return resolveOlderLanding(row, read)
  return order > 0 || isLaterRead(row, read) ? 'update'`,
        to: "  if (order <= 0) return 'stale'\n  return order > 0 || isLaterRead(row, read) ? 'update'",
      },
    ],
    caughtBy: ['invariant 6: a version of the same time, read later, wins', 'XC24 times within the tolerance'],
  },
  {
    name: 'does not raise the time of unchanged content',
    patches: [
      {
        file: RESOLVE,
        from: "return order > 0 || (row.upstreamAt === null && landing.upstreamAt !== null) ? 'touch' : 'same'",
        to: "return 'same'",
      },
    ],
    caughtBy: ['invariant 6: the same content with a later time', 'invariant 6: content first reported without a'],
  },
  {
    name: 'accepts the last commit, whatever the order of the reads',
    patches: [
      { file: RESOLVE, from: 'return row.writer === read.writer || row.sequence <= read.readFrom', to: 'return true' },
    ],
    caughtBy: ['XB14 a row that another sync wrote while the page was', 'XB14 a delete without a time overlaps'],
  },
  {
    name: 'treats a new order of fields as new content',
    patches: [{ file: PLAN, from: "if (resolution === 'update' && ", to: "if (resolution === 'stale' && " }],
    caughtBy: ['a record whose fields only changed their order'],
  },
  {
    name: 'reads integers as doubles',
    patches: [
      {
        file: 'values/json.ts',
        from: 'if (options.onDuplicate === undefined && !hasLongDigits(text))',
        to: 'if (options.onDuplicate === undefined)',
      },
    ],
    caughtBy: ['XD17 integers that a double cannot distinguish'],
  },
  {
    name: 'folds the case of keys',
    patches: [
      { file: TABLE, from: '_key text not null, _sequence', to: '_key text not null collate nocase, _sequence' },
    ],
    caughtBy: ['XD18 XD21 XD22 keys are compared by their bytes'],
  },

  // ── the sweep ──
  {
    name: 'treats a page as unchanged although another owner has its rows',
    patches: [{ file: LOOKUP, from: 'found.ours !== found.count', to: 'found.ours > found.count' }],
    caughtBy: ['F7 a block that another owner lists'],
  },
  {
    name: 'treats a page as unchanged by its contents alone, whatever their times',
    patches: [
      { file: LOOKUP, from: "coalesce(_upstream_at, '-')", to: "''" },
      { file: LOOKUP, from: "${landing.upstreamAt ?? '-'}", to: '' },
    ],
    caughtBy: ['a repeated block with later times raises'],
  },
  {
    name: 'treats a page as unchanged without comparing its contents',
    patches: [{ file: LOOKUP, from: 'if (found.fingerprint !== fingerprintOf(landings)) return null', to: '' }],
    caughtBy: ['a repeated block is unchanged as a whole'],
  },
  {
    name: 'sweeps rows written since the cycle began',
    patches: [
      {
        file: SWEEP,
        from: 'collectUnseenRanges(session, facts.cycle, Math.min(',
        to: 'collectUnseenRanges(session, facts.cycle, Math.max(2 ** 50, ',
      },
    ],
    caughtBy: ['XE6 invariant 5: a row that any sync wrote'],
  },
  {
    name: 'sweeps with every page',
    patches: [
      {
        file: COMMIT,
        from: "commit.transition.kind === 'complete' ? commit.transition.sweep : null",
        to: "commit.transition.kind === 'complete' ? commit.transition.sweep : { maxShare: 1, allowEmpty: true }",
      },
    ],
    caughtBy: ['N12 F6 XE1 invariant 5: only the last page of a'],
  },
  {
    name: 'sweeps after an incremental cycle',
    patches: [
      {
        file: COMMIT,
        from: "sweeps && commit.transition.kind === 'complete'",
        to: "commit.transition.kind === 'complete'",
      },
    ],
    caughtBy: ['invariant 5: an incremental cycle sweeps nothing'],
  },
  {
    name: 'forgets that a quarantined key was listed',
    patches: [
      {
        file: PLAN,
        from: `    if (row?.status === 'live') seenSequences.push(row.sequence)
`,
        to: '',
      },
    ],
    caughtBy: ['a key that could not be landed counts as listed: its row', 'XE2 the rows a resumed cycle'],
  },
  {
    name: 'looks for quarantined keys only among those of the page',
    patches: [{ file: LOOKUP, from: '[...commit.landings, ...commit.quarantined]', to: '[...commit.landings]' }],
    caughtBy: ['a key that could not be landed counts as listed, also beside'],
  },
  {
    name: 'sweeps the rows of other owners',
    patches: [
      {
        file: SWEEP,
        from: 'where t._owner = ?${scope.sql} order by',
        to: 'where (t._owner = ? or true)${scope.sql} order by',
      },
    ],
    caughtBy: ['invariant 5: a sync does not sweep rows of another owner', 'F7 two owners that replace one database'],
  },
  {
    name: 'sweeps a row that another owner still lists',
    patches: [
      {
        file: SWEEP,
        from: '  if (heir === undefined) return false\n',
        to: '  if (heir !== undefined || heir === undefined) return false\n',
      },
    ],
    caughtBy: ['F7 a row that two owners list stays until neither does'],
  },
  {
    name: 'counts what an abandoned cycle saw',
    patches: [
      {
        file: REGISTRY,
        from: 'delete from {seen} where tenant_id = :tenant and cycle_id = :cycle',
        to: 'delete from {seen} where tenant_id = :tenant and cycle_id = -:cycle',
      },
      {
        file: SWEEP,
        from: "'select ranges from tidemark_seen where tenant_id = ? and cycle_id = ?'",
        to: "'select ranges from tidemark_seen where tenant_id = ? and (cycle_id = ? or true)'",
      },
    ],
    caughtBy: ['XE2 the rows an abandoned cycle listed do not'],
  },
  {
    name: 'leaves a returning row with its former owner',
    patches: [
      {
        file: ROWS,
        from: "  const returned = upserts.filter(({ write }) => write.row?.status !== 'live')",
        to: "  const returned = upserts.filter(({ write }) => write.row?.status !== 'live')\n  facts = { ...facts, owner: returned[0]?.write.row?.owner ?? facts.owner }",
      },
    ],
    caughtBy: ['F7 invariant 5: a restored row belongs'],
  },
  {
    name: 'keeps only the last sightings of other syncs',
    patches: [
      {
        file: SWEEP,
        from: '...(stored === undefined ? [] : (JSON.parse(stored.ranges) as Array<[number, number]>)), ',
        to: '',
      },
    ],
    caughtBy: ['XE6 invariant 5: a running sweep keeps every row that'],
  },
  {
    name: 'sweeps rows younger than the source’s lag',
    patches: [
      {
        file: SWEEP,
        from: 'Math.min(facts.startSequence, limits.settledSequence ?? facts.startSequence)',
        to: 'facts.startSequence',
      },
    ],
    caughtBy: ['invariant 5: a row younger than the source’s lag'],
  },
  {
    name: 'deletes without a confirmation',
    patches: [
      {
        file: SWEEP,
        from: 'if (limits.confirmAbsent?.database === table.database) {',
        to: 'if (limits.confirmAbsent === null) {',
      },
    ],
    caughtBy: ['invariant 5: a sweep that needs lookups'],
  },
  {
    name: 'confirms only the first of the rows it would delete',
    patches: [{ file: PLAN, from: 'Math.floor((at * items.length) / limit)', to: 'at' }],
    caughtBy: ['invariant 5: a sweep that needs lookups'],
  },

  // ── soft deletes ──
  {
    name: 'shows deleted rows wherever it shows rows',
    patches: [{ file: DELETE_STATE, from: '` and ${DELETED_AT} is null`', to: "''" }],
    caughtBy: [
      'a soft delete keeps the row',
      'the feed has one entry per soft delete',
      'a record that returns unchanged',
    ],
  },
  {
    name: 'removes rows that are to be kept',
    patches: [
      {
        file: ROWS,
        from: "if (deletes !== 'soft') connection.run(`delete",
        to: "if (deletes !== ('never' as string)) connection.run(`delete",
      },
    ],
    caughtBy: ['a soft delete keeps the row', 'a commit without a delete setting leaves', 'from hard to soft'],
  },
  {
    name: 'keeps rows that are to be removed',
    patches: [
      {
        file: DELETE_STATE,
        from: "if ((state.deletes ?? 'hard') === wanted) return state",
        to: "if ((state.deletes ?? 'hard') === wanted || wanted === 'hard') return state",
      },
    ],
    caughtBy: ['from soft to hard: kept rows are removed', 'from soft to hard: commits alone'],
  },
  {
    name: 'removes what a sweep should keep',
    patches: [
      {
        file: SWEEP,
        from: "if (table.deletes !== 'soft') connection.run(",
        to: "if (table.deletes !== ('never' as string)) connection.run(",
      },
    ],
    caughtBy: ['invariant 5: rows deleted by a sweep are kept', 'a sweep without a record on its page'],
  },
  {
    name: 'sweeps rows that are deleted already',
    patches: [
      { file: SWEEP, from: 'between u.first and u.last${liveCondition(table)}', to: 'between u.first and u.last' },
      { file: SWEEP, from: 'insert into tidemark_tombstones', to: 'insert or replace into tidemark_tombstones' },
    ],
    caughtBy: ['invariant 5: rows deleted by a sweep are kept'],
  },
  {
    name: 'counts deleted rows among those that a sweep may delete',
    patches: [
      {
        file: SWEEP,
        from: 'function countRowsAtStart({ connection }: TenantSession, { live }: Table',
        to: 'function countRowsAtStart({ connection }: TenantSession, { name: live }: Table',
      },
    ],
    caughtBy: ['invariant 11: deleted rows do not count'],
  },
  {
    name: 'treats a kept row as live',
    patches: [
      {
        file: LOOKUP,
        from: 'function createLiveFinder({ connection }: TenantSession, { live }: Table',
        to: 'function createLiveFinder({ connection }: TenantSession, { name: live }: Table',
      },
    ],
    caughtBy: ['a record that returns unchanged', 'invariant 6: an older version does not restore'],
  },
  {
    name: 'treats a block as unchanged although one of its rows is deleted',
    patches: [
      { file: LOOKUP, from: 'from ${table.live} where _key between', to: 'from ${table.name} where _key between' },
    ],
    caughtBy: ['a block of deleted rows is not unchanged'],
  },
  {
    name: 'leaves a returning row marked as deleted',
    patches: [{ file: ROWS, from: 'set _deleted_at = null, _sequence = ?1', to: 'set _sequence = ?1' }],
    caughtBy: ['a record that returns unchanged', 'a record that returns changed'],
  },
  {
    name: 'logs the return of a row as an update',
    patches: [{ file: ROWS, from: '_created_sequence = ?1, _synced_at', to: '_synced_at' }],
    caughtBy: ['a record that returns changed', 'from hard to soft'],
  },
  {
    name: 'loses the owner of a returning row',
    patches: [{ file: ROWS, from: '_owner = ?,\n     _extra', to: '_owner = coalesce(_owner, ?),\n     _extra' }],
    caughtBy: ['F7 two owners of one database: a restored soft-deleted row belongs to the'],
  },
  {
    name: 'shows the sequence of the last version with a row that is deleted',
    patches: [
      {
        file: ROWS,
        from: '_synced_at = ?1, _sequence = ?2, _writer',
        to: '_synced_at = ?1, _sequence = max(_sequence, 0 * ?2), _writer',
      },
    ],
    caughtBy: ['a soft delete keeps the row'],
  },
  {
    name: 'counts deleted rows',
    patches: [
      { file: READING, from: 'from ${liveRows(quoteIdentifier(table), state)}', to: 'from ${quoteIdentifier(table)}' },
    ],
    caughtBy: ['a soft delete keeps the row'],
  },
  {
    name: 'removes live rows with those that were kept',
    patches: [{ file: DELETES, from: 'where ${DELETED_AT} is not null and _key in', to: 'where _key >=' }],
    caughtBy: ['from soft to hard: kept rows are removed'],
  },
  {
    name: 'starts a purge in the middle',
    patches: [
      { file: DELETE_STATE, from: "{ deletes: 'hard', purgedTo: '' }", to: "{ deletes: 'hard', purgedTo: 'c' }" },
    ],
    caughtBy: ['from soft to hard and back'],
  },
  {
    name: 'shows rows that are not purged yet',
    patches: [
      {
        file: DELETE_STATE,
        from: "return deletes === 'soft' || purgedTo !== null",
        to: "return deletes === 'soft' || purgedTo === null && deletes !== null",
      },
    ],
    caughtBy: ['from soft to hard: kept rows are removed'],
  },
  {
    name: 'purges all kept rows in one step',
    patches: [
      {
        file: DELETES,
        from: "and key > ? order by key limit ?', tenantId, table.id, table.purgedTo, scanMax,",
        to: "and key > ? order by key limit 2 * ?', tenantId, table.id, table.purgedTo, scanMax * 100,",
      },
    ],
    caughtBy: ['from soft to hard: kept rows are removed'],
  },
  {
    name: 'purges no kept rows in commits',
    patches: [
      {
        file: DELETES,
        from: 'if (state === table) purgeTable(session, table, PURGE_PER_COMMIT)',
        to: 'if (state === table) void PURGE_PER_COMMIT',
      },
    ],
    caughtBy: ['from soft to hard: commits alone'],
  },
  {
    name: 'keeps the commit of a deletion as long as the row',
    patches: [
      {
        file: HISTORY,
        from: 'const { live, history } = requireTable(session, id)',
        to: 'const { name: live, history } = requireTable(session, id)',
      },
    ],
    caughtBy: ['a soft-deleted row outlives the history'],
  },

  // ── contests ──
  {
    name: 'never confirms a contested row',
    patches: [{ file: PLAN, from: "row.sequence <= settledSequence ? 'wins' : 'waits'", to: "'waits'" }],
    caughtBy: [
      'invariant 13: a listing that contradicts a later time',
      'invariant 13: a deleted row that two complete cycles list',
    ],
  },
  {
    name: 'accepts a contested row at the first sighting',
    patches: [
      {
        file: PLAN,
        from: "if (row.contestedBy === null || row.contestedBy === facts.cycle || !facts.isComplete(row.contestedBy)) return 'open'",
        to: '',
      },
    ],
    caughtBy: [
      'invariant 13: a listing that contradicts a later time',
      'invariant 6: a second sighting in the same cycle',
    ],
  },
  {
    name: 'counts a second sighting in one cycle as a confirmation',
    patches: [
      { file: PLAN, from: 'row.contestedBy === facts.cycle || !facts.isComplete(row.contestedBy)', to: 'false' },
    ],
    caughtBy: ['invariant 6: a second sighting in the same cycle'],
  },
  {
    name: 'overrules rows that are younger than the lag',
    patches: [{ file: PLAN, from: "row.sequence <= settledSequence ? 'wins'", to: "row.sequence > 0 ? 'wins'" }],
    caughtBy: ['invariant 6: a version younger than the source’s lag'],
  },
  {
    name: 'contests versions committed while the page was read',
    patches: [{ file: RESOLVE, from: 'read.isListing && row.sequence <= read.readFrom', to: 'read.isListing' }],
    caughtBy: ['invariant 6: a version committed while the page was read'],
  },
  {
    name: 'contests with the pages of a delta',
    patches: [
      {
        file: PLAN,
        from: "(facts.sweeps || commit.transition.kind === 'repair' || commit.transition.kind === 'columns') &&\n      commit.listing !== undefined",
        to: 'commit.listing !== undefined',
      },
    ],
    caughtBy: ['invariant 6: an incremental cycle never contests'],
  },
  {
    name: 'keeps a contest that a listing has ended',
    patches: [{ file: PLAN, from: 'else if (isContested(row)) contests.push({ landing, contestedBy: null })', to: '' }],
    caughtBy: ['invariant 6: a listing that agrees'],
  },
  {
    name: 'keeps a contest of a replaced version',
    patches: [
      {
        file: ROWS,
        from: '  for (const key of contested) deleteContest(session, table, key)\n',
        to: '',
      },
    ],
    caughtBy: ['invariant 6: a version written since the first sighting'],
  },
  {
    name: 'lands a version that the source refuted',
    patches: [
      {
        file: PLAN,
        from: "if (refuted.has(landing.key)) return 'loses'",
        to: "if (refuted.has(landing.key)) return 'wins'",
      },
    ],
    caughtBy: ['invariant 6: a version that the source'],
  },
  {
    name: 'does not look up contested rows',
    patches: [{ file: PLAN, from: "if (listing?.lookupDatabase === landing.database) return 'ask'", to: '' }],
    caughtBy: ['invariant 13: contested keys are reported'],
  },
  {
    name: 'lets two owners of one key overrule each other',
    patches: [
      { file: PLAN, from: "if (row.status === 'live' && facts.isShared(landing, row)) return 'loses'", to: '' },
    ],
    caughtBy: ['invariant 6: between two owners'],
  },
  {
    name: 'keeps a time in the future',
    patches: [
      {
        file: PLAN,
        from: `if (read.isListing && isStoredTimeInFuture(landing, row, commit)) touches.push({ landing, upstreamAt: landing.upstreamAt })
        else `,
        to: '',
      },
    ],
    caughtBy: ['invariant 13: a stored time in the future'],
  },
  {
    name: 'has no delete limit',
    patches: [{ file: PLAN, from: '  if (toDelete === 0) return false\n', to: '  if (toDelete >= 0) return false\n' }],
    caughtBy: ['XE3 XE5 invariant 11', 'XE4 invariant 11: a sweep of more', 'XE4 invariant 11: new rows'],
  },
  {
    name: 'lets new rows dilute the deleted share',
    patches: [{ file: SWEEP, from: 't._owner = ? and t._created_sequence <= ?', to: 't._owner = ? and ? >= 0' }],
    caughtBy: ['XE4 invariant 11: new rows do not dilute'],
  },

  // ── the feed ──
  {
    name: 'logs an entry for an unchanged record',
    patches: [
      {
        file: PLAN,
        from: "      case 'same':\n",
        to: `      case 'same':
        writes.push({ landing, action: 'updated', sequence: ++headSequence, row })
`,
      },
    ],
    caughtBy: ['R31 invariant 4: landing the same page again', 'invariant 4: the same page landed by another sync'],
  },
  {
    name: 'leaves a gap in the sequence',
    patches: [
      {
        file: PLAN,
        from: "action: 'updated', sequence: ++headSequence",
        to: "action: 'updated', sequence: (headSequence += 2)",
      },
    ],
    caughtBy: ['O8 invariant 7: after any work the sequences'],
  },
  {
    name: 'trusts the clock for the time of commits',
    patches: [{ file: COMMIT, from: 'Math.max(commit.at, tenant.committed_at + 1)', to: 'commit.at' }],
    caughtBy: ['XB16 invariant 7'],
  },
  {
    name: 'leaves swept rows out of the log',
    wrap: (store) => ({
      ...store,
      changes: async (query) =>
        (await store.changes(query)).filter((entry) => entry.action !== 'deleted' || entry.upstreamAt !== null),
    }),
    caughtBy: ['N10 XE9 invariant 5', 'O7 invariant 8'],
  },
  {
    name: 'shows a commit later than the ones after it',
    wrap(store) {
      const met = new Set<number>()
      const isLate = ({ sync, sequence }: LogEntry): boolean => sync === 'two' && met.size < met.add(sequence).size
      return { ...store, changes: async (query) => (await store.changes(query)).filter((entry) => !isLate(entry)) }
    },
    caughtBy: ['invariant 7: readers on other connections'],
  },

  // ── tables and history ──
  {
    name: 'writes the history after the row',
    patches: [
      {
        file: ROWS,
        from: `  archiveVersions(
    session,
    table,
    upserts.map(({ write, landing }) => ({ key: landing.key, until: write.sequence })),
    syncedAt,
  )
`,
        to: '',
      },
      {
        file: ROWS,
        from: '    update.run(...values, landing.key)\n',
        to: `    update.run(...values, landing.key)
    archiveVersions(session, table, [{ key: landing.key, until: write.sequence }], syncedAt)
`,
      },
    ],
    caughtBy: ['invariant 8: the history holds every replaced version'],
  },
  {
    name: 'ends the range of a commit one short',
    patches: [{ file: COMMITS, from: 'range.last = sequence', to: 'range.last = sequence - 1' }],
    caughtBy: ['O7 invariant 8'],
  },
  {
    name: 'loses values that do not fit their column on an update',
    patches: [
      {
        file: ROWS,
        from: 'landing.cursor,\n      writer,\n      encoded.extra,',
        to: 'landing.cursor,\n      writer,\n      null,',
      },
    ],
    caughtBy: ['XD24 a value that its column cannot hold'],
  },
  {
    name: 'reads null in a new column as the value of older rows',
    patches: [{ file: 'stores/kit/tables/decode-record.ts', from: ' && sequence >= column.since', to: '' }],
    caughtBy: ['XD24 a new field becomes a column'],
  },
  {
    name: 'leaves deletions out of the log',
    patches: [{ file: LOG, from: '  if (!chunk.live) parts.push(readDeletions(session, chunk, tables))\n', to: '' }],
    caughtBy: ['O7 invariant 8'],
  },
  {
    name: 'leaves replaced versions out of the log',
    patches: [{ file: LOG, from: 'chunk.live ? [table.live] : [table.live, table.history]', to: '[table.live]' }],
    caughtBy: ['O7 invariant 8'],
  },

  {
    name: 'treats a partly fetched range of the log as complete',
    patches: [
      {
        file: LOG,
        from: '(part.length < chunk.rowsMax ? Infinity : (part.at(-1)?.sequence ?? Infinity))',
        to: 'Infinity + part.length',
      },
    ],
    caughtBy: ['a page bounded by bytes has every entry in order'],
  },

  // ── tenants ──
  {
    name: 'shows every tenant the rows of the first',
    wrap: (store) => ({ ...store, forTenant: () => store }),
    caughtBy: [
      'R33 R44 two tenants have their own sequences',
      'R44 a store is bound to its tenant, and another tenant finds',
    ],
  },
  {
    name: 'lists the quarantine of every tenant',
    patches: [{ file: QUARANTINE, from: 'where q.tenant_id = :tenant', to: 'where (q.tenant_id = :tenant or true)' }],
    caughtBy: ['R44 a store is bound to its tenant, and another tenant finds'],
  },

  {
    name: 'compacts a retained history with the log',
    patches: [{ file: COMPACTION, from: 'Math.min(floor, before)', to: 'floor' }],
    caughtBy: ['a database has its own history retention, beyond'],
  },
  {
    name: 'drops a history above the floor of the log',
    patches: [{ file: COMPACTION, from: 'Math.min(floor, before)', to: 'before' }],
    caughtBy: ['a database has its own history retention, beyond'],
  },
  {
    name: 'never drops the history of a database that follows the log again',
    patches: [{ file: COMPACTION, from: 'before === null ? floor :', to: 'before === null ? from :' }],
    caughtBy: ['a database has its own history retention, beyond'],
  },
  {
    name: 'never compacts versions below the floor',
    patches: [
      {
        file: HISTORY,
        from: '_until_sequence <= ? returning',
        to: '_until_sequence <= ? and _sequence > (select floor from tidemark_tenants where tenant_id = ${tenantId}) returning',
      },
    ],
    caughtBy: ['XE13 the entry that a row'],
  },
  {
    name: 'deletes a commit with the first of its entries',
    patches: [
      {
        file: HISTORY,
        from: 'and not exists (select 1 from ${live} where _sequence between ?2 and last_sequence)',
        to: '',
      },
    ],
    caughtBy: ['XE13 the entry that a row'],
  },
  {
    name: 'deletes cycles that rows refer to',
    patches: [
      {
        file: COMPACTION,
        from: 'c.cycle_id not in (select cycle_id from {commits} where tenant_id = :tenant)',
        to: 'true',
      },
    ],
    caughtBy: ['XE13 cycle records are deleted with the'],
  },
  {
    name: 'deletes the last complete cycle of a failing sync',
    patches: [
      {
        file: COMPACTION,
        from: 'c.cycle_id not in (coalesce(c.complete, 0), coalesce(g.inflight_cycle, 0), coalesce(g.committed_by, 0))',
        to: 'true',
      },
    ],
    caughtBy: ['XE13 cycle records are deleted with the'],
  },

  // ── webhooks ──
  {
    name: 'lets two processes deliver to one webhook',
    patches: [{ file: WEBHOOKS, from: 'heldUntil > found.now', to: 'heldUntil < found.now' }],
    caughtBy: ['invariant 3: only one process delivers at'],
  },
  {
    name: 'records deliveries without checking the claim',
    patches: [
      {
        file: WEBHOOKS,
        from: 'disabled = :disabledReason where ${CLAIM_CONDITION}`',
        to: 'disabled = :disabledReason where ${WEBHOOK_CONDITION} and :epoch > 0`',
      },
    ],
    caughtBy: ['invariant 3: only one process delivers at', 'a disabled webhook cannot be'],
  },
  {
    name: 'delivers to a webhook that was disabled',
    patches: [{ file: WEBHOOKS, from: ' and disabled is null {for_update}', to: ' {for_update}' }],
    caughtBy: ['a disabled webhook cannot be'],
  },
  {
    name: 'loses pending deliveries when the cursor advances',
    patches: [{ file: WEBHOOKS, from: ' } of undelivered) {', to: ' } of undelivered.slice(1)) {' }],
    caughtBy: ['XA6 the delivered sequence and'],
  },
  {
    name: 'lets a delivery continue with outdated settings',
    patches: [{ file: WEBHOOKS, from: 'retry_at = :retryAt, ${CLEAR_CLAIM} where', to: 'retry_at = :retryAt where' }],
    caughtBy: ['an edit changes the given settings'],
  },
  {
    name: 'processes a message twice',
    patches: [{ file: INBOUND, from: 'found.at > at - claimTtlMs', to: 'found.at < at - claimTtlMs' }],
    caughtBy: ['Z32 of many concurrent deliveries'],
  },
  {
    name: 'forgets that a message was done',
    patches: [{ file: INBOUND, from: "if (done && found.at >= purgeBefore) return 'done'", to: '' }],
    caughtBy: ['Z32 of many concurrent deliveries'],
  },
]
