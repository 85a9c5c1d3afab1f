import { inFile, type PlantedBug } from './planted-bug.ts'

const RESOLVE = ['test/values/resolve-landing.test.ts', 'test/stores/sqlite.test.ts']
const RANGES = ['test/stores/sequence-ranges.test.ts']
const SQLITE = ['test/stores/sqlite.test.ts']
const POSTGRES = ['test/stores/postgres.pg.test.ts']
const SHAPES = ['test/stores/tables/shapes.pg.test.ts']

export const STORE_BUGS: readonly PlantedBug[] = [
  ...inFile('src/stores/kit/resolve-landing.ts', RESOLVE, [
    [
      'an older version of a listing overwrites without confirmation',
      "read.isListing && row.sequence <= read.readFrom ? 'contest' : 'stale'",
      "'stale'",
    ],
    [
      'a delta contests a newer row',
      'read.isListing && row.sequence <= read.readFrom',
      'row.sequence <= read.readFrom',
    ],
    [
      'a row committed during the read is contested',
      'read.isListing && row.sequence <= read.readFrom',
      'read.isListing',
    ],
    [
      'a row of another sync is ordered by its own sequence wrongly',
      'row.writer === read.writer || row.sequence <= read.readFrom',
      'row.writer === read.writer || row.sequence < read.readFrom',
    ],
    [
      'rows of other syncs always count as older',
      'return row.writer === read.writer || row.sequence <= read.readFrom',
      'return true',
    ],
    [
      'a deleted row comes back by the fact that it was deleted with',
      "(row.status === 'deleted' && order === 0 && landing.upstreamAt === row.upstreamAt)",
      'false',
    ],
    ['a swept row that is deleted keeps its old time', "row.status === 'swept' && !(order < 0)", 'false'],
    [
      'an older deletion deletes',
      `if (order < 0) return resolveOlderLanding(row, read)
    return order >= 0`,
      'return order >= 0',
    ],
    ['a time that was missing is not stored', '(row.upstreamAt === null && landing.upstreamAt !== null)', 'false'],
  ]),
  ...inFile('src/stores/kit/plan-landing.ts', SQLITE, [
    ['a contest is won by the first listing', "return 'open'\n", "return 'wins'\n"],
    ['a cycle that did not complete confirms a contest', ' || !facts.isComplete(row.contestedBy)', ''],
    [
      'a confirmed row younger than the lag is overwritten',
      "row.sequence <= settledSequence ? 'wins' : 'waits'",
      "'wins'",
    ],
    [
      'a row of another owner is contested',
      "if (row.status === 'live' && facts.isShared(landing, row)) return 'loses'\n",
      '',
    ],
    ['a lookup that refutes is ignored', "if (refuted.has(landing.key)) return 'loses'", ''],
    [
      'a stale sighting is swept',
      "resolution === 'same' || resolution === 'touch' || resolution === 'stale'",
      "resolution === 'same' || resolution === 'touch'",
    ],
    ['the row of a quarantined record is swept', "if (row?.status === 'live') seenSequences.push(row.sequence)", ''],
    ['a time in the future stays', 'upstreamAt < row.upstreamAt && instantToMs(row.upstreamAt) > at', 'false'],
    ['the delete limit allows a whole database', 'toDelete >= existed ? !sweep.allowEmpty : ', ''],
    [
      'the delete limit compares with the wrong side',
      'toDelete > existed * sweep.maxShare',
      'toDelete < existed * sweep.maxShare',
    ],
    ['adjacent ranges swallow what lies between', 'first <= last[1] + 1', 'first <= last[1] + 2', RANGES],
    ['touching sequences swallow what lies between', 'sequence <= last[1] + 1', 'sequence <= last[1] + 2', RANGES],
    ['a range within another one shortens it', 'Math.max(last[1], end)', 'end', RANGES],
    ['keys are sorted by UTF-16 units', 'isSurrogate(x) === isSurrogate(y) ? x - y : isSurrogate(x) ? 1 : -1', 'x - y'],
  ]),
  ...inFile(
    'src/stores/kit/check-state-rollback.ts',
    ['test/registry/rolled-back.test.ts'],
    [
      [
        'a state that was put back is accepted',
        'if (entry.version !== (moved ?? 0)) return',
        'if (entry.version > (moved ?? 0)) return',
      ],
      [
        'a deleted row of the registry is accepted',
        'return moved === null ? null : `is gone',
        'return moved === null || moved > 0 ? null : `is gone',
      ],
      [
        'an emptied state is accepted',
        '(entry.committed !== null) !== Boolean(moved_has_state)',
        'entry.committed !== null && !moved_has_state',
      ],
    ],
  ),
  ...inFile('src/stores/sqlite/commit.ts', SQLITE, [
    [
      'the time of the feed does not advance',
      'Math.max(commit.at, tenant.committed_at + 1)',
      'Math.max(commit.at, tenant.committed_at)',
    ],
    [
      'the sweep shares the time of its page',
      'const sweptAt = headSequence > tenant.sequence ? committedAt + 1 : committedAt',
      'const sweptAt = committedAt',
    ],
  ]),
  ...inFile('src/stores/kit/checkpoint.ts', SQLITE, [
    ['a commit with an old version lands', 'if (entry.version !== version) return false', ''],
    ['a page lands twice', ' && entry.inflight_page === transition.page - 1', ''],
    [
      'a landed key stays in quarantine',
      "if (waiting !== undefined && transition.kind !== 'columns') {",
      'if (waiting !== undefined && landings.length > 1_000) {',
    ],
    [
      'an order for a backfill is forgotten by the cycle that was under way',
      'entry.needed_at !== null && entry.needed_cycle !== transition.cycle',
      'entry.needed_at !== null',
    ],
    ['a commit without a tidemark clears it', 'tidemark = coalesce(:tidemark, tidemark)', 'tidemark = :tidemark'],
  ]),
  ...inFile('src/stores/sqlite/sweep.ts', SQLITE, [
    [
      'rows written since the cycle began are swept',
      'collectUnseenRanges(session, facts.cycle, Math.min(',
      'collectUnseenRanges(session, facts.cycle, Math.max(',
    ],
    ['rows of other owners are swept', 'where t._owner = ?${scope.sql}', 'where (t._owner = ? or true)${scope.sql}'],
    ['a claimed row dies', 'unseen.filter(({ key }) => !transferOwnership(session, table, key))', 'unseen'],
    [
      'old claims keep rows for ever',
      "connection.run('delete from tidemark_claims where tenant_id = ? and owner_id = ? and cycle_id <> ?', tenantId, facts.owner, facts.cycle)",
      '',
    ],
    ['newcomers dilute the share that dies', 't._owner = ? and t._created_sequence <= ?', 't._owner = ? and ? >= 0'],
    [
      'a sighting is not passed to other sweeps',
      `if (seenSequences.length === 0) return
  const`,
      `if (seenSequences.length >= 0) return
  const`,
    ],
  ]),
  ...inFile(
    'src/stores/sqlite/feed.ts',
    [...SQLITE, 'test/server/feed.test.ts'],
    [
      [
        'the last entry of a page is skipped',
        'entries.length === limit ? (last?.sequence ?? after) : Math.max(after, until)',
        'Math.max(after, until)',
      ],
    ],
  ),
  ...inFile('src/stores/sqlite/history-retention.ts', SQLITE, [
    [
      'a commit whose rows are current leaves the directory',
      'and not exists (select 1 from ${live} where _sequence between ?2 and last_sequence)',
      '',
    ],
    ['versions after the bound are removed', '_until_sequence <= ? returning', '_until_sequence <= ? + 1 returning'],
  ]),
  ...inFile(
    'src/stores/sqlite/log.ts',
    [...SQLITE, 'test/server/feed.test.ts'],
    [
      [
        'the feed of one database shows all of them',
        "wanted === null ? '' : ` and c.database_id in",
        "wanted !== null ? '' : ` and c.database_id in",
      ],
      [
        'the first entry after a place is skipped',
        'where _sequence > ? and _sequence <= ? order by',
        'where _sequence > ? + 1 and _sequence <= ? order by',
      ],
      ['a deletion is left out', 'if (!chunk.live) parts.push(readDeletions(session, chunk, tables))', ''],
      ['a replaced version is left out', 'chunk.live ? [table.live] : [table.live, table.history]', '[table.live]'],
      ['an update is called a creation', "created === sequence ? 'created' : 'updated'", "'created'"],
    ],
  ),
  ...inFile('src/stores/sqlite/rows.ts', SQLITE, [
    [
      'what does not fit its column is lost on an update',
      'writer,\n      encoded.extra,\n    ]\n    bindValues(table, encoded, values)\n    update.run(...values, landing.key)\n  }',
      'writer,\n      null,\n    ]\n    bindValues(table, encoded, values)\n    update.run(...values, landing.key)\n  }',
    ],
    [
      'an update without a time forgets the one of the row',
      'upstreamAtOf(write), syncedAt',
      'landing.upstreamAt, syncedAt',
    ],
    [
      'a deletion keeps no version',
      `    archiveVersions(session, table, [{ key: landing.key, until: sequence }], syncedAt)
`,
      '',
    ],
    [
      'a row that came back keeps its tombstone',
      'for (const { landing } of returned) deleteTombstone(session, table, landing.key)',
      '',
    ],
  ]),
  ...inFile(
    'src/stores/kit/tables/encode-record.ts',
    [...SQLITE, 'test/stores/tables/lossless.test.ts'],
    [
      [
        'an absent member comes back as null',
        "if (column.none !== 'absent' && sequence >= column.since) (absent ??= []).push(member)",
        '',
      ],
      [
        'a null comes back as absent',
        "if (column.none !== 'null' || sequence < column.since) defineMember((extra ??= {}), member, null)",
        '',
      ],
      [
        'a null of a row that is older than its column comes back as absent',
        "column.none !== 'null' || sequence < column.since",
        "column.none !== 'null'",
      ],
      [
        'an empty text of a row that is older than its column comes back as absent',
        "column.none === 'empty' && sequence >= column.since",
        "column.none === 'empty'",
      ],
      [
        'an integer beyond 64 bits goes into a column for smaller ones',
        "typeOfValue(value) === 'bigint'\n      case 'numeric'",
        "true\n      case 'numeric'",
      ],
    ],
  ),
  ...inFile('src/stores/kit/registry.ts', SQLITE, [
    [
      'a lost lease still commits',
      'entry.epoch === lease.epoch && entry.holder === lease.holder',
      'entry.holder === lease.holder',
    ],
    ['an erased tenant comes back by itself', 'if (automatic) throw createTenantErasedError(sql.tenant)', ''],
  ]),
  ...inFile('src/stores/kit/roles/leases.ts', SQLITE, [
    ['a held lease is taken over', 'expiresAt > found.now', 'expiresAt < found.now'],
    ['an unfinished cycle of another mode is resumed', ' && unfinished.mode === request.mode', ''],
    ['a listing begins with the committed state', "mode === 'replace' ? null : entry.committed", 'entry.committed'],
    [
      'a pause counts as another failure',
      "'{greatest}(failures, 1)' : 'failures + 1'",
      "'failures + 1' : 'failures + 1'",
    ],
    ['a renewal shortens a lease', 'held_until = {greatest}(held_until, :until)', 'held_until = :until'],
  ]),
  ...inFile(
    'src/stores/kit/roles/sequences.ts',
    [...SQLITE, 'test/server/feed.test.ts'],
    [
      [
        'the time of a sequence is inclusive',
        'committed_at >= :time order by committed_at',
        'committed_at > :time order by committed_at',
      ],
    ],
  ),
  ...inFile('src/stores/kit/compaction.ts', SQLITE, [
    ['compaction passes the start of a cycle under way', 'Math.min(older, least ?? Infinity)', 'older'],
    ['the newest complete cycle is forgotten', 'coalesce(c.complete, 0), ', ''],
    ['a kept history goes with the log', 'Math.min(floor, before)', 'floor'],
    ['a history is dropped above the floor of the log', 'Math.min(floor, before)', 'before'],
  ]),
  ...inFile(
    'src/stores/kit/roles/pacing.ts',
    [...SQLITE, 'test/engine/account-pauses.test.ts'],
    [
      [
        'a shorter pause replaces a stored one',
        '{greatest}(:now + :ms, ${PAUSE_END})',
        '{least}(:now + :ms, ${PAUSE_END})',
      ],
      [
        'pauses of other workers count',
        'and p.connector_id = :worker and p.until_at',
        'and (p.connector_id = :worker or true) and p.until_at',
      ],
      ['pauses of other tenants count', 'on p.tenant_id = :tenant and', 'on (p.tenant_id = :tenant or true) and'],
      ['a pause that is over counts', ' and p.until_at > n.now', ''],
      ['only the first pacer is paused', ': pacers.toSorted()) {', ': pacers.slice(0, 1)) {'],
      [
        'a clock that was set back makes a stored pause longer',
        "'{least}(until_at, :now",
        "'{greatest}(until_at, :now",
      ],
      ['a pause is stored too short', 'ms: Math.ceil(ms), at', 'ms: Math.floor(ms / 2), at'],
    ],
    'XD1|XC26|NX',
  ),
  ...inFile(
    'src/stores/drivers.ts',
    ['test/stores/drivers.test.ts'],
    [['the scheme of a store is read by its case', '?.[1]?.toLowerCase()', '?.[1]']],
  ),
  ...inFile(
    'src/stores/kit/sql/dialect.ts',
    SQLITE,
    [['requests of another process are forgotten', 'stored.${name} + excluded.${name}', 'excluded.${name}']],
    'Z43',
  ),
  ...inFile(
    'src/stores/sqlite/migrations/0017-typed-tables.ts',
    ['test/stores/migrations/sqlite.test.ts'],
    [['the range of a migrated commit is off by one', 'max(position) %', '1 + max(position) %']],
  ),
  ...inFile(
    'src/stores/postgres/migrations/0014-source-pauses.ts',
    ['test/stores/postgres-walls.pg.test.ts'],
    [
      [
        'the pauses of all tenants can be read',
        'alter table tidemark.pauses enable row level security, force row level security;',
        '',
      ],
    ],
  ),
  ...inFile(
    'src/stores/kit/roles/syncs.ts',
    SQLITE,
    [['a resumed sync keeps its failures', "'paused = false, failures = 0, retry_at = null'", "'paused = false'"]],
    'SX6',
  ),
  ...inFile('src/stores/kit/erase-tenant.ts', SQLITE, [
    [
      'a tenant with a running sync is erased',
      'expiresAt !== null && expiresAt > now',
      'expiresAt !== null && expiresAt < now',
    ],
    ['an erased tenant forgets its epochs', 'set epoch = {greatest}(epoch,', 'set epoch = {least}(epoch,'],
  ]),
  ...inFile(
    'src/stores/kit/roles/webhooks.ts',
    [...SQLITE, 'test/webhooks/claim.test.ts'],
    [
      ['a webhook is claimed by two', 'heldUntil > found.now', 'heldUntil < found.now'],
      [
        'deliveries of a lost claim are noted',
        'disabled = :disabledReason where ${CLAIM_CONDITION}`',
        'disabled = :disabledReason where ${WEBHOOK_CONDITION} and :epoch > 0`',
      ],
    ],
    'webhook|claim|delivers',
  ),
  ...inFile(
    'src/stores/kit/roles/inbound.ts',
    SQLITE,
    [['an inbound message is acted on twice', "if (done && found.at >= purgeBefore) return 'done'", '']],
    'message',
  ),
  ...inFile(
    'src/stores/kit/roles/consumers.ts',
    [...SQLITE, 'test/server/consumer.test.ts'],
    [
      [
        'the limit of consumers is one too high',
        'if (owned >= ownedMax) return false',
        'if (owned > ownedMax) return false',
      ],
    ],
    'AX9',
  ),
  ...inFile('src/stores/postgres/commit.ts', POSTGRES, [
    ['a fenced commit lands', "if (entry === null) return rollback<CommitOutcome>({ kind: 'fenced' })\n", ''],
    ['the time of the feed goes back', 'Math.max(commit.at, tenant.committed_at + 1)', 'commit.at'],
  ]),
  ...inFile(
    'src/stores/postgres/sweep.ts',
    POSTGRES,
    [
      [
        'rows written since the cycle began are swept',
        "int8range(0, $5::bigint, '[]')",
        "int8range(0, $5::bigint + 1000000, '[]')",
      ],
      ['rows of other owners are swept', ') t where t._owner = $3', ') t where t._owner = $3 or true'],
      [
        'an inherited row is lost',
        'if (inherited > 0) transferOwnership',
        'if (inherited > 1_000_000) transferOwnership',
      ],
      [
        'the range of a sweep in the directory is off by one',
        'last: headSequence + toDelete }',
        'last: headSequence + toDelete - 1 }',
      ],
    ],
    'invariant 5|F7|sweep|invariant 8',
  ),
  ...inFile(
    'src/stores/postgres/feed.ts',
    POSTGRES,
    [
      [
        'the page ends too late when it is full',
        'entries.length === limit || isCut ? (last?.sequence ?? after)',
        'entries.length < 0 ? (last?.sequence ?? after)',
      ],
      [
        'a page that was cut by its bytes leaves a gap',
        'entries.length === limit || isCut ?',
        'entries.length === limit ?',
        ['test/stores/tables/rows.pg.test.ts'],
        'bytes',
      ],
    ],
    'feed|XE13|compaction|invariant 8',
  ),
  ...inFile(
    'src/stores/postgres/history-retention.ts',
    POSTGRES,
    [['compaction forgets versions that are replaced later', 'where _until_sequence <= $1', 'where _sequence <= $1']],
    'history retention|XE13|compaction',
  ),
  ...inFile(
    'src/stores/postgres/rows.ts',
    POSTGRES,
    [
      [
        'an update archives no version',
        "const archived = `, archived as (${archiveSql(table, { from: 'w', until: 'w.c0', at: '$1' })})`",
        "const archived = ''",
      ],
      [
        'an update loses what its columns cannot hold',
        'values: upserts.map(({ encoded }) => encoded.extra)',
        'values: upserts.map(() => null)',
      ],
      [
        'a row that comes back keeps its tombstone',
        'rows.end()\n  }\n  transaction.send(\n    `delete from tidemark.tombstones',
        'rows.end()\n  }\n  if (returned.length === 0) transaction.send(\n    `delete from tidemark.tombstones',
      ],
    ],
    'XD24|invariant 8|invariant 6|unchanged|older',
  ),
  ...inFile(
    'src/stores/postgres/table.ts',
    POSTGRES,
    [
      [
        'a new column counts for rows that were there before',
        'growColumns(table.columns, records, since, { reserved: [...RESERVED_NAMES, ...foreign]',
        'growColumns(table.columns, records, 0, { reserved: [...RESERVED_NAMES, ...foreign]',
      ],
    ],
    'XD24',
  ),
  ...inFile(
    'src/stores/kit/tables/encode-record.ts',
    SHAPES,
    [
      [
        'a uuid in capital letters is taken for one in small letters',
        'isUuid(preservesText ? value.toLowerCase() : value)',
        'isUuid(value.toLowerCase())',
      ],
    ],
    'XD24 every value',
  ),
  ...inFile('src/stores/kit/tables/key-columns.ts', SHAPES, [
    ['a key is enforced on a table that has rows', 'if (!isEmpty) return', 'if (isEmpty && !isEmpty) return'],
  ]),
  ...inFile('src/stores/kit/tables/grow-columns.ts', SHAPES, [
    [
      'a declared type that the column does not have is reported with every cycle',
      'isSameColumn(before, column)) continue',
      'isSameColumn(before, column) && column.wanted === undefined) continue',
    ],
  ]),
]
