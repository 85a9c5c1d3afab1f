import type { Consumer, ConsumerName } from '../../contract/index.ts'
import { consumerValues, toConsumer, type ConsumerRow } from '../kit/consumer-rows.ts'
import type { Session } from './connection.ts'

/** What readers of the feed tell of themselves, and how often they asked. */

export function consumers({ connection, tenantId }: Session): Consumer[] {
  return connection.all<ConsumerRow>('select * from tidemark_consumers where tenant_id = ? order by owner, name, resource', tenantId).map(toConsumer)
}

export function putConsumer({ connection, tenantId }: Session, consumer: Consumer, { ownedMax }: { ownedMax: number }): boolean {
  return connection.write(() => {
    const { owned } = connection.get<{ owned: number }>(
      'select count(*) as owned from tidemark_consumers where tenant_id = ?1 and owner = ?2 and not (name = ?3 and resource = ?4)', tenantId, consumer.owner, consumer.name, consumer.resource,
    )!
    if (owned >= ownedMax) return false
    connection.run(
      'insert or replace into tidemark_consumers (tenant_id, owner, name, resource, databases, sequence, cursor, checkpoint_at, reported_at, metadata) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
      tenantId, ...consumerValues(consumer),
    )
    return true
  })
}

export function removeConsumer({ connection, tenantId }: Session, { owner, name, resource }: ConsumerName): boolean {
  return connection.write(() => connection.run('delete from tidemark_consumers where tenant_id = ? and owner = ? and name = ? and resource = ?', tenantId, owner, name, resource).changes > 0)
}

export function countRequests({ connection, tenantId }: Session, window: number, counts: ReadonlyArray<readonly [string, number]>): number[] {
  return connection.write(() => {
    connection.run('delete from tidemark_requests where tenant_id = ? and window < ?', tenantId, window - 1)
    return counts.map(([who, count]) => connection.get<{ count: number }>(
      `insert into tidemark_requests (tenant_id, window, who, count) values (?, ?, ?, ?)
       on conflict (tenant_id, window, who) do update set count = count + excluded.count returning count`, tenantId, window, who, count,
    )!.count)
  })
}
