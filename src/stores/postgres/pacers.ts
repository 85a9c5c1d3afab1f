import type { SlotRequest, Slots } from '../../contract/index.ts'
import { CLOCK_SET_BACK_MS } from '../kit/clock-set-back.ts'
import type { Session } from './connection.ts'
import { NOW_MS } from './registry.ts'

/** One statement: whoever comes at the same time waits for its row, and finds the slots gone. */
export function takeSlots(session: Session, { worker, pacer, count, paceMs }: SlotRequest): Promise<Slots> {
  return session.connection.write(session.tenant, async (transaction) => {
    // The clock is read once per call: a slot that is free at once is at the very time that is returned.
    const { last, now } = (await transaction.get<{ last: number; now: number }>(
      `insert into tidemark.pacers as p (tenant_id, connector_id, pacer, slot_at, taken_at)
       select $1, $2, $3, c.now + $5::bigint - $4::bigint, c.now from (select ${NOW_MS} as now) c
       on conflict (tenant_id, connector_id, pacer) do update set
         slot_at = greatest(
           p.slot_at + $4::bigint - case when p.taken_at - excluded.taken_at > ${CLOCK_SET_BACK_MS} then p.taken_at - excluded.taken_at else 0 end,
           excluded.taken_at
         ) + $5::bigint - $4::bigint,
         taken_at = excluded.taken_at
       returning slot_at as last, taken_at as now`,
      session.tenant, worker, pacer, paceMs, count * paceMs,
    ))!
    return { now, first: last - (count - 1) * paceMs }
  })
}

export async function pacers(session: Session, worker: string): Promise<Record<string, number>> {
  const rows = await session.connection.read(session.tenant, (transaction) => transaction.all<{ pacer: string; slot_at: number }>(
    'select pacer, slot_at from tidemark.pacers where tenant_id = $1 and connector_id = $2', session.tenant, worker,
  ))
  return Object.fromEntries(rows.map((row) => [row.pacer, row.slot_at]))
}
