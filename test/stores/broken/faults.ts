import type { LogEntry, Store } from '../../../src/contract/index.ts'
import type { Patch } from './patched-modules.ts'

/** A store that is wrong in one way, and the cases that must tell. */
export interface Fault {
  /** "A store that …" */
  readonly name: string
  readonly patches?: readonly Patch[]
  wrap?(store: Store): Store
  /** Each of them must fail, by an assertion of its own. Given by the beginning of their names. */
  readonly caughtBy: readonly string[]
}

const sqlite = (name: string): string => `stores/sqlite/${name}.ts`
const [COMMIT, LOOKUP, ROWS, SWEEP] = [sqlite('commit'), sqlite('lookup'), sqlite('rows'), sqlite('sweep')]
const [TABLE, HISTORY, LOG, STANDINGS, READING] = [sqlite('table'), sqlite('history'), sqlite('log'), sqlite('standings'), sqlite('reading')]
const DELETES = sqlite('deletes')
const DELETE_STATE = 'stores/kit/tables/delete-state.ts'
const kit = (name: string): string => `stores/kit/${name}.ts`
const [REGISTRY, CHECKPOINT, COMMITS, COMPACTION, ERASE_TENANT] = [kit('registry'), kit('checkpoint'), kit('commits'), kit('compaction'), kit('erase-tenant')]
const role = (name: string): string => `stores/kit/roles/${name}.ts`
const [WEBHOOKS, INBOUND, PACERS, QUARANTINE, LEASES] = [role('webhooks'), role('inbound'), role('pacing'), role('quarantine'), role('leases')]
const [JUDGE, PLAN] = ['stores/kit/judge.ts', 'stores/kit/plan-landing.ts']

export const faults: readonly Fault[] = [
  // ── where all stand ──
  {
    name: 'tells where syncs stand once, and nothing of what moves later',
    patches: [{ file: STANDINGS, from: 'if (mark === since)', to: 'if (since !== undefined)' }],
    caughtBy: ['whatever moves a sync since the mark', 'XB2 asked again and again while others write'],
  },
  {
    name: 'tells fewer cycles of a sync than were asked for',
    patches: [{ file: STANDINGS, from: 'recent, tenantId', to: '1, tenantId' }],
    caughtBy: ['where all syncs stand is told at once'],
  },
  {
    name: 'tells the cycles of a sync oldest first',
    patches: [{ file: STANDINGS, from: 'order by c.cycle_id desc`', to: 'order by c.cycle_id`' }],
    caughtBy: ['where all syncs stand is told at once'],
  },
  {
    name: 'tells where all stand when asked for one',
    patches: [{ file: STANDINGS, from: "'g.connector_id = ? and g.stream_id = ?'", to: "'(true or ? = ?)'" }],
    caughtBy: ['where all syncs stand is told at once'],
  },
  {
    name: 'tells where the syncs of other tenants stand',
    patches: [{ file: STANDINGS, from: 'from tidemark_registry g where g.tenant_id = ? and', to: 'from tidemark_registry g where ? > 0 and' }],
    caughtBy: ['the standings of a tenant are its own'],
  },

  // ── slots of pacers ──
  {
    name: 'gives one slot to two',
    patches: [{ file: PACERS, from: 'Math.max(last + paceMs', to: 'Math.max(last' }],
    caughtBy: ['NX1 a pacer that was never asked', 'NX1 several slots', 'NX1 of many who ask'],
  },
  {
    name: 'gives the slots of those who took several to others too',
    patches: [{ file: PACERS, from: 'last: first + (count - 1) * paceMs', to: 'last: first' }],
    caughtBy: ['NX1 several slots', 'NX1 of many who ask'],
  },
  {
    name: 'saves up the slots of a rest',
    patches: [{ file: PACERS, from: 'Math.max(last + paceMs', to: 'Math.min(last + paceMs' }],
    caughtBy: ['NX1 slots are never in the past'],
  },
  {
    name: 'has one budget for all workers',
    wrap: (store) => ({ ...store, takeSlots: (request) => store.takeSlots({ ...request, worker: 'any' }), pacers: () => store.pacers('any') }),
    caughtBy: ['NX1 pacers of another name'],
  },
  {
    name: 'waits for the clock that was set back',
    patches: [{ file: PACERS, from: '(behind > CLOCK_SET_BACK_MS ? behind : 0)', to: '0' }],
    caughtBy: ['XC26 a clock that was set back'],
  },
  {
    name: 'gives slots anew to whoever comes with an earlier time',
    patches: [{ file: PACERS, from: 'behind > CLOCK_SET_BACK_MS', to: 'behind > 0' }],
    caughtBy: ['XC26 a clock that was set back'],
  },

  // ── leases and checkpoints ──
  {
    name: 'ignores the epoch',
    patches: [{ file: REGISTRY, from: ' && entry.epoch === lease.epoch && entry.holder === lease.holder ? entry : null', to: ' ? entry : null' }],
    caughtBy: ['XB1 invariant 3: the commit of a stale epoch', 'XA11 a stale epoch cannot begin', 'a released sync is free at once'],
  },
  {
    name: 'knows a lease by its holder alone',
    patches: [{ file: REGISTRY, from: 'entry.epoch === lease.epoch && ', to: '' }],
    caughtBy: ['XA11 a stale epoch cannot begin'],
  },
  {
    name: 'forgets why the source ended a cycle',
    patches: [{ file: CHECKPOINT, from: 'stopWord: move.stopWord ?? null', to: 'stopWord: null' }],
    caughtBy: ['S22 why the source ended a cycle'],
  },
  {
    name: 'gives one sync to two runners',
    patches: [{ file: LEASES, from: 'entry.held_until! > found.now', to: 'entry.held_until! < found.now' }],
    caughtBy: ['XB1 a free sync is acquired', 'XB1 of many runners'],
  },
  {
    name: 'takes a lease away when it runs out',
    wrap(store) {
      const ends = new Map<string, number>()
      return {
        ...store,
        async acquire(ref, request) {
          ends.set(ref.sync, request.at + request.ttlMs)
          return await store.acquire(ref, request)
        },
        commit: async (commit) => (commit.at > ends.get(commit.lease.ref.sync)! ? { kind: 'fenced' } : await store.commit(commit)),
      }
    },
    caughtBy: ['XA11 expiry alone takes nothing away'],
  },
  {
    name: 'moves the checkpoint in a transaction of its own, before the rows',
    patches: [{
      file: COMMIT, from: '  writeRows(session, plan, tables, {',
      to: "  moveCheckpoint(session, { entry, backfill: lockBackfill(session, commit) }, commit)\n  connection.exec('commit')\n  connection.exec('begin immediate')\n  writeRows(session, plan, tables, {",
    }],
    caughtBy: ['XA3 a crash before any statement of a commit (continue)', 'XA3 a crash before any statement of a commit (complete)', 'a commit that fails half-way leaves nothing'],
  },
  {
    name: 'lands the rows in a transaction of its own, before the checkpoint',
    patches: [{
      file: COMMIT, from: '  const version = moveCheckpoint(session, { entry, backfill: lockBackfill(session, commit) }, commit)',
      to: "  connection.exec('commit')\n  connection.exec('begin immediate')\n  const version = moveCheckpoint(session, { entry, backfill: lockBackfill(session, commit) }, commit)",
    }],
    caughtBy: ['XA3 a crash before any statement of a commit (continue)', 'XA3 a crash before any statement of a commit (abandon)'],
  },
  {
    name: 'overwrites a checkpoint that moved meanwhile',
    patches: [{ file: CHECKPOINT, from: '  if (entry.version !== version) return false\n', to: '' }],
    caughtBy: ['XB3 a commit on another version'],
  },
  {
    name: 'lands a page twice when the first answer was lost',
    patches: [{ file: CHECKPOINT, from: ' && entry.inflight_page === move.page - 1', to: '' }],
    caughtBy: ['XB4 after a commit whose answer was lost', 'XB3 a commit on another version'],
  },
  {
    name: 'commits with every page',
    patches: [{
      file: CHECKPOINT, from: '...toInflight(entry)!, page: move.page, state: move.state, scope: move.scope, tidemark: move.tidemark, guard: move.guard })\n',
      to: "...toInflight(entry)!, page: move.page, state: move.state, scope: move.scope, tidemark: move.tidemark, guard: move.guard })\n      yield* sql.run('update {registry} set committed = :state where tenant_id = :tenant and sync_id = :sync', { state: move.state, sync })\n",
    }],
    caughtBy: ['invariant 1: a page lands its rows', 'a fresh begin gives the unfinished cycle up'],
  },
  {
    name: 'forgets what the guard knew',
    patches: [{ file: CHECKPOINT, from: 'tidemark: move.tidemark, guard: move.guard })', to: 'tidemark: move.tidemark })' }],
    caughtBy: ['an unfinished cycle is taken up where its last page left it'],
  },

  {
    name: 'begins anew with its epochs',
    patches: [{ file: ERASE_TENANT, from: 'set epoch = {greatest}(epoch,', to: 'set epoch = {least}(epoch,' }],
    caughtBy: ['Z14 invariant 3: a lease and a claim from before an erasure'],
  },
  {
    name: 'lets a schedule undo an erasure',
    patches: [{ file: REGISTRY, from: '  if (byItself) throw tenantErased(sql.tenant)\n', to: '' }],
    caughtBy: ['Z14 what runs by itself does not bring'],
  },

  {
    name: 'keeps messages for who was erased',
    patches: [{ file: INBOUND, from: 'if (tenant?.erased === true || tenant?.erased === 1) throw tenantErased(sql.tenant)', to: '' }],
    caughtBy: ['Z14 what runs by itself does not bring'],
  },

  // ── which fact wins ──
  {
    name: 'brings the dead back',
    patches: [{ file: JUDGE, from: "    if (order < 0 || (row.status === 'deleted' && order === 0 && landing.upstreamAt === row.upstreamAt)) return olderByTime(row, read)\n", to: '' }],
    caughtBy: ['XE7 a delete that comes before its create', 'XE7 invariant 6: a tombstone keeps its time'],
  },
  {
    name: 'lets an older fact overwrite a newer row',
    patches: [{ file: JUDGE, from: "  if (order < 0 && !isRead) return olderByTime(row, read)\n  return order > 0 || isLaterRead(row, read) ? 'update'", to: "  return order > 0 || isLaterRead(row, read) ? 'update'" }],
    caughtBy: ['invariant 6: an older fact never overwrites', 'invariant 6: times are compared to the microsecond'],
  },
  {
    name: 'wants a strictly later time',
    patches: [{ file: JUDGE, from: "  if (order < 0 && !isRead) return olderByTime(row, read)\n  return order > 0 || isLaterRead(row, read) ? 'update'", to: "  if (order <= 0) return 'stale'\n  return order > 0 || isLaterRead(row, read) ? 'update'" }],
    caughtBy: ['invariant 6: a fact of the same time, read later, wins', 'XC24 times within the tolerance'],
  },
  {
    name: 'does not raise the time of unchanged content',
    patches: [{ file: JUDGE, from: "return order > 0 || (row.upstreamAt === null && landing.upstreamAt !== null) ? 'touch' : 'same'", to: "return 'same'" }],
    caughtBy: ['invariant 6: the same content with a later time', 'invariant 6: content told first without a time'],
  },
  {
    name: 'takes whatever comes last, however it was read',
    patches: [{ file: JUDGE, from: 'return row.writer === read.writer || row.sequence <= read.readFrom', to: 'return true' }],
    caughtBy: ['XB14 a row another sync wrote while the page was read', 'XB14 a delete without a time overlaps'],
  },
  {
    name: 'takes a new order of members for a new content',
    patches: [{ file: PLAN, from: "if (verdict === 'update' && ", to: "if (verdict === 'stale' && " }],
    caughtBy: ['a record whose members only changed their order'],
  },
  {
    name: 'reads integers as doubles',
    patches: [{ file: 'values/json.ts', from: 'if (options.onDuplicate === undefined && !LONG_DIGITS.test(text))', to: 'if (options.onDuplicate === undefined)' }],
    caughtBy: ['XD17 integers that a double cannot tell apart'],
  },
  {
    name: 'folds the case of keys',
    patches: [{ file: TABLE, from: '_key text not null, _sequence', to: '_key text not null collate nocase, _sequence' }],
    caughtBy: ['XD18 XD21 XD22 keys are compared by their bytes'],
  },

  // ── the sweep ──
  {
    name: 'takes a page for unchanged though its rows are somebody else’s',
    patches: [{ file: LOOKUP, from: 'found.ours !== found.count', to: 'found.ours > found.count' }],
    caughtBy: ['F7 a block that another owner lists'],
  },
  {
    name: 'takes a page for unchanged by its contents alone, whatever their times',
    patches: [
      { file: LOOKUP, from: "coalesce(_upstream_at, '-')", to: "''" },
      { file: LOOKUP, from: "${landing.upstreamAt ?? '-'}", to: '' },
    ],
    caughtBy: ['a block told again with later times'],
  },
  {
    name: 'takes a page for unchanged without looking at its contents',
    patches: [{ file: LOOKUP, from: 'if (found.stamps !== stampsOf(landings)) return null', to: '' }],
    caughtBy: ['a block told again is unchanged as a whole'],
  },
  {
    name: 'sweeps rows written since the cycle began',
    patches: [{ file: SWEEP, from: 'gatherUnseen(session, facts.cycle, Math.min(', to: 'gatherUnseen(session, facts.cycle, Math.max(2 ** 50, ' }],
    caughtBy: ['XE6 invariant 5: a row that any sync wrote'],
  },
  {
    name: 'sweeps with every page',
    patches: [{ file: COMMIT, from: "commit.move.kind === 'complete' ? commit.move.sweep : null", to: "commit.move.kind === 'complete' ? commit.move.sweep : { maxShare: 1, allowEmpty: true }" }],
    caughtBy: ['N12 F6 XE1 invariant 5: no page but the last one'],
  },
  {
    name: 'sweeps after an incremental cycle',
    patches: [{ file: COMMIT, from: "sweeps && commit.move.kind === 'complete'", to: "commit.move.kind === 'complete'" }],
    caughtBy: ['invariant 5: an incremental cycle sweeps nothing'],
  },
  {
    name: 'forgets that a quarantined key was listed',
    patches: [{ file: PLAN, from: "    if (row?.status === 'live') seen.push(row.sequence)\n", to: '' }],
    caughtBy: ['a key that could not be landed counts as listed: its row', 'XE2 what a resumed cycle saw'],
  },
  {
    name: 'looks for quarantined keys only among those of the page',
    patches: [{ file: LOOKUP, from: '[...commit.landings, ...commit.quarantined]', to: '[...commit.landings]' }],
    caughtBy: ['a key that could not be landed counts as listed, also beside'],
  },
  {
    name: 'sweeps the rows of other owners',
    patches: [{ file: SWEEP, from: 'where t._owner = ? order by', to: 'where (t._owner = ? or true) order by' }],
    caughtBy: ['invariant 5: a sync does not sweep rows of another owner', 'F7 two owners that replace one database'],
  },
  {
    name: 'sweeps a row that another owner still lists',
    patches: [{ file: SWEEP, from: '  if (heir === undefined) return false\n', to: '  if (heir !== undefined || heir === undefined) return false\n' }],
    caughtBy: ['F7 a row that two owners list lives until neither does'],
  },
  {
    name: 'counts what an abandoned cycle saw',
    patches: [
      { file: REGISTRY, from: 'delete from {seen} where tenant_id = :tenant and cycle_id = :cycle', to: 'delete from {seen} where tenant_id = :tenant and cycle_id = -:cycle' },
      { file: SWEEP, from: "'select ranges from tidemark_seen where tenant_id = ? and cycle_id = ?'", to: "'select ranges from tidemark_seen where tenant_id = ? and (cycle_id = ? or true)'" },
    ],
    caughtBy: ['XE2 what an abandoned cycle saw does not count'],
  },
  {
    name: 'leaves a row that came back with the owner it had',
    patches: [{ file: ROWS, from: 'const owner = facts.owners', to: 'const owner = upserts.find(({ row }) => row !== undefined)?.row?.owner ?? facts.owners' }],
    caughtBy: ['F7 invariant 5: a row that comes back'],
  },
  {
    name: 'keeps only the last report of what others saw alive',
    patches: [{ file: SWEEP, from: '...(told === undefined ? [] : (JSON.parse(told.ranges) as Array<[number, number]>)), ', to: '' }],
    caughtBy: ['XE6 invariant 5: a sweep under way keeps every row'],
  },
  {
    name: 'sweeps rows younger than the source’s lag',
    patches: [{ file: SWEEP, from: 'Math.min(facts.startSequence, limits.settledSequence ?? facts.startSequence)', to: 'facts.startSequence' }],
    caughtBy: ['invariant 5: a row younger than the source’s lag'],
  },
  {
    name: 'deletes without asking',
    patches: [{ file: SWEEP, from: 'if (limits.asks?.database === table.database) {', to: 'if (limits.asks === null) {' }],
    caughtBy: ['invariant 5: a sweep that has to ask'],
  },
  {
    name: 'asks only for the first of the rows it would delete',
    patches: [{ file: PLAN, from: 'Math.floor((at * items.length) / limit)', to: 'at' }],
    caughtBy: ['invariant 5: a sweep that has to ask'],
  },

  // ── soft deletes ──
  {
    name: 'shows deleted rows wherever it shows rows',
    patches: [{ file: DELETE_STATE, from: '` and ${DELETED_AT} is null`', to: "''" }],
    caughtBy: ['a soft delete keeps the row', 'the feed has one entry per soft delete', 'a record that returns as it was'],
  },
  {
    name: 'removes rows that are to be kept',
    patches: [{ file: ROWS, from: "if (deletes !== 'soft') connection.run(`delete", to: "if (deletes !== ('never' as string)) connection.run(`delete" }],
    caughtBy: ['a soft delete keeps the row', 'what a commit does not say of deletes', 'from hard to soft'],
  },
  {
    name: 'keeps rows that are to be removed',
    patches: [{ file: DELETE_STATE, from: "if ((state.deletes ?? 'hard') === wanted) return state", to: "if ((state.deletes ?? 'hard') === wanted || wanted === 'hard') return state" }],
    caughtBy: ['from soft to hard: rows that were kept', 'from soft to hard: commits alone'],
  },
  {
    name: 'removes what a sweep should keep',
    patches: [{ file: SWEEP, from: "if (table.deletes !== 'soft') connection.run(", to: "if (table.deletes !== ('never' as string)) connection.run(" }],
    caughtBy: ['invariant 5: what a sweep deletes is kept too', 'a sweep without a record on its page'],
  },
  {
    name: 'sweeps rows that are deleted already',
    patches: [
      { file: SWEEP, from: 'between u.first and u.last${andLive(table)}', to: 'between u.first and u.last' },
      { file: SWEEP, from: 'insert into tidemark_tombstones', to: 'insert or replace into tidemark_tombstones' },
    ],
    caughtBy: ['invariant 5: what a sweep deletes is kept too'],
  },
  {
    name: 'counts deleted rows among those that a sweep may delete',
    patches: [
      { file: SWEEP, from: 'function countExisted({ connection }: Session, { live }: Table', to: 'function countExisted({ connection }: Session, { name: live }: Table' },
    ],
    caughtBy: ['invariant 11: deleted rows do not count'],
  },
  {
    name: 'takes a row that was kept for one that is there',
    patches: [{ file: LOOKUP, from: 'function findLive({ connection }: Session, { live }: Table', to: 'function findLive({ connection }: Session, { name: live }: Table' }],
    caughtBy: ['a record that returns as it was', 'invariant 6: an older version does not bring'],
  },
  {
    name: 'takes a block for unchanged although a row of it is deleted',
    patches: [{ file: LOOKUP, from: 'from ${table!.live} where _key between', to: 'from ${table!.name} where _key between' }],
    caughtBy: ['a block of deleted rows is not unchanged'],
  },
  {
    name: 'leaves a row that came back marked as deleted',
    patches: [{ file: ROWS, from: 'set _deleted_at = null, _sequence = ?1', to: 'set _sequence = ?1' }],
    caughtBy: ['a record that returns as it was', 'a record that returns changed'],
  },
  {
    name: 'calls the return of a row an update',
    patches: [{ file: ROWS, from: '_created_sequence = ?1, _synced_at', to: '_synced_at' }],
    caughtBy: ['a record that returns changed', 'from hard to soft'],
  },
  {
    name: 'forgets to whom a row belongs that came back',
    patches: [{ file: ROWS, from: '_owner = ?,\n     _extra', to: '_owner = coalesce(_owner, ?),\n     _extra' }],
    caughtBy: ['F7 two owners of one database: a row that comes back soft-deleted'],
  },
  {
    name: 'shows the sequence of the last version with a row that is deleted',
    patches: [{ file: ROWS, from: '_synced_at = ?1, _sequence = ?2, _writer', to: '_synced_at = ?1, _sequence = max(_sequence, 0 * ?2), _writer' }],
    caughtBy: ['a soft delete keeps the row'],
  },
  {
    name: 'counts deleted rows',
    patches: [{ file: READING, from: 'from ${liveRows(quoteName(table), state)}', to: 'from ${quoteName(table)}' }],
    caughtBy: ['a soft delete keeps the row'],
  },
  {
    name: 'removes live rows with those that were kept',
    patches: [{ file: DELETES, from: 'where ${DELETED_AT} is not null and _key in', to: 'where _key >=' }],
    caughtBy: ['from soft to hard: rows that were kept'],
  },
  {
    name: 'begins in the middle with what it removes',
    patches: [{ file: DELETE_STATE, from: "{ deletes: 'hard', purgedTo: '' }", to: "{ deletes: 'hard', purgedTo: 'c' }" }],
    caughtBy: ['from soft to hard and back'],
  },
  {
    name: 'shows what it has not removed yet',
    patches: [{ file: DELETE_STATE, from: "return deletes === 'soft' || purgedTo !== null", to: "return deletes === 'soft' || purgedTo === null && deletes !== null" }],
    caughtBy: ['from soft to hard: rows that were kept'],
  },
  {
    name: 'removes all that was kept in one step',
    patches: [{ file: DELETES, from: "and key > ? order by key limit ?', tenantId, table.id, table.purgedTo, scanMax,", to: "and key > ? order by key limit 2 * ?', tenantId, table.id, table.purgedTo, scanMax * 100," }],
    caughtBy: ['from soft to hard: rows that were kept'],
  },
  {
    name: 'lets commits alone remove nothing of what was kept',
    patches: [{ file: DELETES, from: 'if (state === table) purgeTable(session, table, PURGE_PER_COMMIT)', to: 'if (state === table) void PURGE_PER_COMMIT' }],
    caughtBy: ['from soft to hard: commits alone'],
  },
  {
    name: 'keeps the directory of a deletion as long as the row',
    patches: [{ file: HISTORY, from: 'const { live, history } = requireTable(session, id)', to: 'const { name: live, history } = requireTable(session, id)' }],
    caughtBy: ['a soft-deleted row outlives the history'],
  },

  // ── contests ──
  {
    name: 'never confirms a contested row',
    patches: [{ file: PLAN, from: "row.sequence <= listing!.settledSequence ? 'wins' : 'waits'", to: "'waits'" }],
    caughtBy: ['invariant 13: a listing that contradicts a later time', 'invariant 13: a deleted row that two complete cycles list'],
  },
  {
    name: 'believes a contested row at first sight',
    patches: [{ file: PLAN, from: "if (row.contestedBy === null || row.contestedBy === facts.cycle || !facts.isComplete(row.contestedBy)) return 'open'", to: '' }],
    caughtBy: ['invariant 13: a listing that contradicts a later time', 'invariant 6: a second sighting in the same cycle'],
  },
  {
    name: 'takes a second sighting in one cycle for a confirmation',
    patches: [{ file: PLAN, from: 'row.contestedBy === facts.cycle || !facts.isComplete(row.contestedBy)', to: 'false' }],
    caughtBy: ['invariant 6: a second sighting in the same cycle'],
  },
  {
    name: 'overrules rows that are younger than the lag',
    patches: [{ file: PLAN, from: "row.sequence <= listing!.settledSequence ? 'wins'", to: "row.sequence > 0 ? 'wins'" }],
    caughtBy: ['invariant 6: a version younger than the source’s lag'],
  },
  {
    name: 'contests what was committed while the page was read',
    patches: [{ file: JUDGE, from: 'read.isListing && row.sequence <= read.readFrom', to: 'read.isListing' }],
    caughtBy: ['invariant 6: a version committed while the page was read'],
  },
  {
    name: 'contests with the pages of a delta',
    patches: [{ file: PLAN, from: 'isListing: facts.sweeps && commit.listing !== undefined', to: 'isListing: commit.listing !== undefined' }],
    caughtBy: ['invariant 6: an incremental cycle never contests'],
  },
  {
    name: 'remembers a contest that a listing has ended',
    patches: [{ file: PLAN, from: 'else if (row!.contestedBy !== null) contests.push({ landing, by: null })', to: '' }],
    caughtBy: ['invariant 6: a listing that agrees'],
  },
  {
    name: 'remembers a contest of a version that is gone',
    patches: [{ file: ROWS, from: '    if (row!.contestedBy !== null) forgetContest(session, table, landing.key)\n', to: '' }],
    caughtBy: ['invariant 6: a version written since the first sighting'],
  },
  {
    name: 'lands what the source refuted',
    patches: [{ file: PLAN, from: "if (refuted.has(landing.key)) return 'loses'", to: "if (refuted.has(landing.key)) return 'wins'" }],
    caughtBy: ['invariant 6: what the source refutes'],
  },
  {
    name: 'does not ask for contested rows',
    patches: [{ file: PLAN, from: "if (listing!.asks === landing.database) return 'ask'", to: '' }],
    caughtBy: ['invariant 13: contested keys are reported'],
  },
  {
    name: 'lets two owners of one key overrule each other',
    patches: [{ file: PLAN, from: "if (row.status === 'live' && facts.isShared(landing, row)) return 'loses'", to: '' }],
    caughtBy: ['invariant 6: between two owners'],
  },
  {
    name: 'keeps a time in the future',
    patches: [{ file: PLAN, from: 'if (read.isListing && isAhead(landing, row!, commit)) touches.push({ landing, upstreamAt: landing.upstreamAt })\n        else ', to: '' }],
    caughtBy: ['invariant 13: a stored time in the future'],
  },
  {
    name: 'has no brake',
    patches: [{ file: PLAN, from: '  if (doomed === 0) return false\n', to: '  if (doomed >= 0) return false\n' }],
    caughtBy: ['XE3 XE5 invariant 11', 'XE4 invariant 11: a sweep of more', 'XE4 invariant 11: newcomers'],
  },
  {
    name: 'lets newcomers dilute the share that dies',
    patches: [{ file: SWEEP, from: 'where _owner = ? and _created_sequence <= ?', to: 'where _owner = ? and ? >= 0' }],
    caughtBy: ['XE4 invariant 11: newcomers do not dilute'],
  },

  // ── the feed ──
  {
    name: 'makes an entry of a record landed again',
    patches: [{ file: PLAN, from: "      case 'same':\n", to: "      case 'same':\n        writes.push({ landing, action: 'updated', sequence: ++position, row })\n" }],
    caughtBy: ['R31 invariant 4: landing the same page again', 'invariant 4: the same page landed by another sync'],
  },
  {
    name: 'leaves a gap in the sequence',
    patches: [{ file: PLAN, from: "action: 'updated', sequence: ++position", to: "action: 'updated', sequence: (position += 2)" }],
    caughtBy: ['O8 invariant 7: after any work the sequences'],
  },
  {
    name: 'trusts the clock for the time of commits',
    patches: [{ file: COMMIT, from: 'Math.max(commit.at, tenant.committed_at + 1)', to: 'commit.at' }],
    caughtBy: ['XB16 invariant 7'],
  },
  {
    name: 'does not tell of swept rows',
    wrap: (store) => ({ ...store, changes: async (query) => (await store.changes(query)).filter((entry) => entry.action !== 'deleted' || entry.upstreamAt !== null) }),
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
      { file: ROWS, from: '  keepVersions(session, table, writes.map(({ landing, sequence }) => ({ key: landing.key, until: sequence })), syncedAt)\n', to: '' },
      { file: ROWS, from: '    update.run(...values)\n', to: '    update.run(...values)\n    keepVersions(session, table, [{ key: landing.key, until: sequence }], syncedAt)\n' },
    ],
    caughtBy: ['invariant 8: the history holds every replaced version'],
  },
  {
    name: 'ends the range of a commit one short',
    patches: [{ file: COMMITS, from: 'range.last = sequence', to: 'range.last = sequence - 1' }],
    caughtBy: ['O7 invariant 8'],
  },
  {
    name: 'loses what does not fit its column on an update',
    patches: [{ file: ROWS, from: 'writer, record.extra]', to: 'writer, null]' }],
    caughtBy: ['XD24 a value that its column cannot hold'],
  },
  {
    name: 'takes null in a new column for the value of rows that were there before',
    patches: [{ file: 'stores/kit/tables/decode-record.ts', from: ' && sequence >= column.since', to: '' }],
    caughtBy: ['XD24 a new member becomes a column'],
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
    name: 'takes a range of the log of which only the beginning was fetched for all of it',
    patches: [{ file: LOG, from: '(part.length < chunk.rowsMax ? Infinity : part.at(-1)!.sequence)', to: 'Infinity + part.length' }],
    caughtBy: ['a page bounded by bytes has every entry in order'],
  },

  // ── tenants ──
  {
    name: 'shows every tenant the rows of the first',
    wrap: (store) => ({ ...store, forTenant: () => store }),
    caughtBy: ['R33 R44 two tenants have their own sequences', 'R44 a store knows its tenant, and another tenant finds nothing'],
  },
  {
    name: 'lists the quarantine of every tenant',
    patches: [{ file: QUARANTINE, from: 'where q.tenant_id = :tenant', to: 'where (q.tenant_id = :tenant or true)' }],
    caughtBy: ['R44 a store knows its tenant, and another tenant finds nothing'],
  },

  {
    name: 'drops a history that is to be kept with the log',
    patches: [{ file: COMPACTION, from: 'Math.min(floor, before)', to: 'floor' }],
    caughtBy: ['a database keeps its history for days of its own'],
  },
  {
    name: 'drops a history above the floor of the log',
    patches: [{ file: COMPACTION, from: 'Math.min(floor, before)', to: 'before' }],
    caughtBy: ['a database keeps its history for days of its own'],
  },
  {
    name: 'never drops the history of a database that follows the log again',
    patches: [{ file: COMPACTION, from: 'before === null ? floor :', to: 'before === null ? from :' }],
    caughtBy: ['a database keeps its history for days of its own'],
  },
  {
    name: 'never looks again at what the floor has passed',
    patches: [{ file: HISTORY, from: '_until_sequence <= ? returning', to: '_until_sequence <= ? and _sequence > (select floor from tidemark_tenants where tenant_id = ${tenantId}) returning' }],
    caughtBy: ['XE13 what a row stood on'],
  },
  {
    name: 'forgets a commit with the first of its entries',
    patches: [{ file: HISTORY, from: 'and not exists (select 1 from ${live} where _sequence between ?2 and last_sequence)', to: '' }],
    caughtBy: ['XE13 what a row stood on'],
  },
  {
    name: 'forgets the cycles that rows came with',
    patches: [{ file: COMPACTION, from: 'c.cycle_id not in (select cycle_id from {commits} where tenant_id = :tenant)', to: 'true' }],
    caughtBy: ['XE13 records of cycles go with the log'],
  },
  {
    name: 'forgets the last complete cycle of a sync that fails',
    patches: [{ file: COMPACTION, from: 'c.cycle_id not in (coalesce(c.complete, 0), coalesce(g.inflight_cycle, 0), coalesce(g.committed_by, 0))', to: 'true' }],
    caughtBy: ['XE13 records of cycles go with the log'],
  },

  // ── webhooks ──
  {
    name: 'lets two deliver to one webhook',
    patches: [{ file: WEBHOOKS, from: 'found.held_until! > found.now', to: 'found.held_until! < found.now' }],
    caughtBy: ['invariant 3: only one delivers at a time'],
  },
  {
    name: 'notes deliveries whoever says so',
    patches: [{ file: WEBHOOKS, from: 'disabled = :disabled where ${CLAIMED}`', to: 'disabled = :disabled where ${WEBHOOK} and :epoch > 0`' }],
    caughtBy: ['invariant 3: only one delivers at a time', 'a webhook that was disabled'],
  },
  {
    name: 'delivers to a webhook that was disabled',
    patches: [{ file: WEBHOOKS, from: ' and disabled is null {for_update}', to: ' {for_update}' }],
    caughtBy: ['a webhook that was disabled'],
  },
  {
    name: 'forgets what waits when its place moves',
    patches: [{ file: WEBHOOKS, from: ' } of kept) {', to: ' } of kept.slice(1)) {' }],
    caughtBy: ['XA6 the place and what waits'],
  },
  {
    name: 'lets who delivers go on by the settings of before',
    patches: [{ file: WEBHOOKS, from: 'retry_at = :retryAt, ${UNCLAIM} where', to: 'retry_at = :retryAt where' }],
    caughtBy: ['an edit changes what is given'],
  },
  {
    name: 'takes a message twice',
    patches: [{ file: INBOUND, from: 'found.at > at - busyMs', to: 'found.at < at - busyMs' }],
    caughtBy: ['Z32 of many that bring one message'],
  },
  {
    name: 'forgets that a message was done',
    patches: [{ file: INBOUND, from: "if (done && found.at >= forgetBefore) return 'done'", to: '' }],
    caughtBy: ['Z32 of many that bring one message'],
  },
]
