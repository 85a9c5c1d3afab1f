import type { Consumer, ConsumerStore } from '../../../contract/index.ts'
import { lockTenant } from '../registry.ts'
import { defineRead, defineWrite, type PlansOf } from '../sql/port.ts'
import { required } from '../../../values/required.ts'

export const CONSUMER_PLANS = {
  consumers: defineRead(function* (sql) {
    const found = yield* sql.all<ConsumerRow>(
      'select * from {consumers} where tenant_id = :tenant order by owner, name, resource',
    )
    return found.map(toConsumer)
  }),

  putConsumer: defineWrite(function* (sql, consumer, { ownedMax }) {
    yield* lockTenant(sql)
    const { owner, name, resource, databases, sequence, cursor, checkpointAt, reportedAt, metadata } = consumer
    const { owned } = yield* sql.one<{ owned: number }>(
      'select count(*) as owned from {consumers} where tenant_id = :tenant and owner = :owner and not (name = :name and resource = :resource)',
      { owner, name, resource },
    )
    if (owned >= ownedMax) return false
    const settings = ['databases', 'sequence', 'cursor', 'checkpoint_at', 'reported_at', 'metadata']
    yield* sql.run(
      sql.dialect.upsert({
        table: 'consumers',
        key: ['tenant_id', 'owner', 'name', 'resource'],
        insert: settings,
        update: settings,
      }),
      {
        owner,
        name,
        resource,
        databases: databases === null ? null : JSON.stringify(databases),
        sequence,
        cursor,
        checkpoint_at: checkpointAt,
        reported_at: reportedAt,
        metadata,
      },
    )
    return true
  }),

  removeConsumer: defineWrite(function* (sql, { owner, name, resource }) {
    const removed = yield* sql.run(
      'delete from {consumers} where tenant_id = :tenant and owner = :owner and name = :name and resource = :resource',
      { owner, name, resource },
    )
    return removed > 0
  }),

  countRequests: defineWrite(function* (sql, window, counts) {
    const add = sql.dialect.upsert({
      table: 'requests',
      key: ['tenant_id', '{requests_window}', 'caller'],
      insert: ['count'],
      add: ['count'],
    })
    // Always in the same order, so that two processes that count the same callers cannot deadlock.
    for (const [caller, count] of counts.toSorted(([a], [b]) => (a < b ? -1 : 1)))
      yield* sql.send(add, { requests_window: window, caller, count })
    const totals = yield* sql.all<{ caller: string; count: number }>(
      'select caller, count from {requests} where tenant_id = :tenant and {requests_window} = :window',
      { window },
    )
    yield* sql.run(sql.dialect.deleteSkipLocked('requests', '{requests_window} < :oldest'), { oldest: window - 1 })
    const byCaller = new Map(totals.map(({ caller, count }) => [caller, count]))
    return counts.map(([caller]) => required(byCaller.get(caller), 'The request count of a caller'))
  }),
} satisfies PlansOf<ConsumerStore>

interface ConsumerRow {
  owner: string
  name: string
  resource: string
  databases: string | null
  sequence: number
  cursor: string | null
  checkpoint_at: number
  reported_at: number
  metadata: string | null
}

function toConsumer(row: ConsumerRow): Consumer {
  return {
    owner: row.owner,
    name: row.name,
    resource: row.resource,
    databases: row.databases === null ? null : (JSON.parse(row.databases) as string[]),
    sequence: row.sequence,
    cursor: row.cursor,
    checkpointAt: row.checkpoint_at,
    reportedAt: row.reported_at,
    metadata: row.metadata,
  }
}
