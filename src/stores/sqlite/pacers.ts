import type { SlotRequest, Slots } from '../../contract/index.ts'
import { CLOCK_SET_BACK_MS } from '../kit/clock-set-back.ts'
import type { Session } from './connection.ts'

export function takeSlots({ connection, tenantId }: Session, { worker, pacer, count, paceMs, at: now }: SlotRequest): Slots {
  return connection.write((): Slots => {
    const before = connection.get<{ slot_at: number; taken_at: number }>(
      'select slot_at, taken_at from tidemark_pacers where tenant_id = ? and connector_id = ? and pacer = ?', tenantId, worker, pacer,
    )
    const behind = before === undefined ? 0 : before.taken_at - now
    const first = before === undefined ? now : Math.max(before.slot_at + paceMs - (behind > CLOCK_SET_BACK_MS ? behind : 0), now)
    connection.run(
      `insert into tidemark_pacers (tenant_id, connector_id, pacer, slot_at, taken_at) values (?, ?, ?, ?, ?)
       on conflict do update set slot_at = excluded.slot_at, taken_at = excluded.taken_at`,
      tenantId, worker, pacer, first + (count - 1) * paceMs, now,
    )
    return { now, first }
  })
}

export function pacers({ connection, tenantId }: Session, worker: string): Record<string, number> {
  const rows = connection.all<{ pacer: string; slot_at: number }>('select pacer, slot_at from tidemark_pacers where tenant_id = ? and connector_id = ?', tenantId, worker)
  return Object.fromEntries(rows.map((row) => [row.pacer, row.slot_at]))
}
