import type { Commit, PartitionRow, PartitionStore } from '../../../contract/index.ts'
import { SYNC_ID_SQL } from '../registry.ts'
import type { RegistryEntry } from '../registry-rows.ts'
import { defineRead, type PlansOf, type Sql, type Steps } from '../sql/port.ts'

const COLUMNS = 'partition_key as "key", state, cycle_id as cycle'
const OF_SYNC = `tenant_id = :tenant and sync_id = ${SYNC_ID_SQL}`

export const PARTITION_PLANS = {
  partitions: defineRead(function* (sql, { worker, sync }, { after, limit }) {
    return yield* sql.all<PartitionRow>(
      `select ${COLUMNS} from {partitions} where ${OF_SYNC} ${after === undefined ? '' : 'and partition_key > :after'} order by partition_key limit :limit`,
      { worker, sync, limit, ...(after !== undefined && { after }) },
    )
  }),

  partitionStates: defineRead(function* (sql, { worker, sync }, keys) {
    const found: PartitionRow[] = []
    for (let start = 0; start < keys.length; start += KEYS_PER_QUERY) {
      const chunk = keys.slice(start, start + KEYS_PER_QUERY)
      // Repeats of a key fill the chunk, so that one statement serves any number of keys.
      const values = KEY_PARAMETERS.map((name, index) => [name, chunk[index] ?? chunk[0] ?? ''] as const)
      found.push(
        ...(yield* sql.all<PartitionRow>(
          `select ${COLUMNS} from {partitions} where ${OF_SYNC} and partition_key in (${KEY_PARAMETERS.map((name) => `:${name}`).join(', ')})`,
          { worker, sync, ...Object.fromEntries(values) },
        )),
      )
    }
    return found
  }),

  countPartitions: defineRead(function* (sql, { worker, sync }) {
    const { count } = yield* sql.one<{ count: number }>(`select count(*) as count from {partitions} where ${OF_SYNC}`, {
      worker,
      sync,
    })
    return count
  }),
} satisfies PlansOf<PartitionStore>

const KEYS_PER_QUERY = 32
const KEY_PARAMETERS = Array.from({ length: KEYS_PER_QUERY }, (_, index) => `key${index}`)

/**
 * Invariant 1: the states of partitions change in the transaction of the page that moved them. Legal once the sync is
 * locked. Only sends, so that a pipelined transaction does not wait.
 */
export function* writePartitions(
  sql: Sql,
  { sync_id: sync, inflight_cycle: cycle }: RegistryEntry,
  { transition, partitions = [] }: Pick<Commit, 'transition' | 'partitions'>,
): Steps<void> {
  if (transition.kind === 'set')
    yield* sql.send('delete from {partitions} where tenant_id = :tenant and sync_id = :sync', { sync })
  const upsert = sql.dialect.upsert({
    table: 'partitions',
    key: ['tenant_id', 'sync_id', 'partition_key'],
    insert: ['state', 'cycle_id'],
    update: ['state', 'cycle_id'],
  })
  for (const { key, state } of partitions) {
    if (state === null)
      yield* sql.send(
        'delete from {partitions} where tenant_id = :tenant and sync_id = :sync and partition_key = :key',
        { sync, key },
      )
    else
      yield* sql.send(upsert, {
        sync_id: sync,
        partition_key: key,
        state,
        cycle_id: transition.kind === 'set' ? null : cycle,
      })
  }
}
