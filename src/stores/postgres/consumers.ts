import type { Consumer, ConsumerName } from '../../contract/index.ts'
import { consumerValues, toConsumer, type ConsumerRow } from '../kit/consumer-rows.ts'
import { bigintArray, textArray } from './arrays.ts'
import type { Session } from './connection.ts'
import { deleteUnlocked } from './delete-unlocked.ts'
import { lockTenant } from './registry.ts'

/** What readers of the feed tell of themselves, and how often they asked. */

export function consumers({ connection, tenant }: Session): Promise<Consumer[]> {
  return connection.read(tenant, async (transaction) => (await transaction.all<ConsumerRow>('select * from tidemark.consumers where tenant_id = $1 order by owner, name, resource', tenant)).map(toConsumer))
}

export function putConsumer({ connection, tenant }: Session, consumer: Consumer, { ownedMax }: { ownedMax: number }): Promise<boolean> {
  return connection.write(tenant, async (transaction) => {
    await lockTenant(transaction)
    return (await transaction.run(
      `insert into tidemark.consumers (tenant_id, owner, name, resource, databases, sequence, cursor, checkpoint_at, reported_at, metadata)
       select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10
       where (select count(*) from tidemark.consumers where tenant_id = $1 and owner = $2 and not (name = $3 and resource = $4)) < $11
       on conflict (tenant_id, owner, name, resource) do update set databases = excluded.databases, sequence = excluded.sequence, cursor = excluded.cursor,
         checkpoint_at = excluded.checkpoint_at, reported_at = excluded.reported_at, metadata = excluded.metadata`,
      tenant, ...consumerValues(consumer), ownedMax,
    )) > 0
  })
}

export function removeConsumer({ connection, tenant }: Session, { owner, name, resource }: ConsumerName): Promise<boolean> {
  return connection.write(tenant, async (transaction) => (await transaction.run(
    'delete from tidemark.consumers where tenant_id = $1 and owner = $2 and name = $3 and resource = $4', tenant, owner, name, resource,
  )) > 0)
}

export function countRequests({ connection, tenant }: Session, window: number, counts: ReadonlyArray<readonly [string, number]>): Promise<number[]> {
  return connection.write(tenant, async (transaction) => {
    // In one order: two processes that count the same callers must not wait for each other in a circle.
    const sorted = counts.toSorted(([a], [b]) => (a < b ? -1 : 1))
    const totals = await transaction.all<{ who: string; count: number }>(
      `insert into tidemark.requests as r (tenant_id, time_window, who, count) select $1, $2, who, count from unnest($3::text[], $4::bigint[]) as given (who, count)
       on conflict (tenant_id, time_window, who) do update set count = r.count + excluded.count returning who, count`,
      tenant, window, textArray(sorted.map(([who]) => who)), bigintArray(sorted.map(([, count]) => count)),
    )
    await deleteUnlocked(transaction, 'requests', 'time_window < $2', window - 1)
    const byWho = new Map(totals.map(({ who, count }) => [who, count]))
    return counts.map(([who]) => byWho.get(who)!)
  })
}
