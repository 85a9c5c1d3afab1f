import type { Pause, PauseRequest, Pauses } from '../../contract/index.ts'
import type { Session } from './connection.ts'

/** A clock that was set back does not make a pause longer than it was announced. */
const UNTIL = 'min(until_at, :now + until_at - noted_at)'

export function notePause({ connection, tenantId }: Session, { worker, pacers, origin, ms, at: now }: PauseRequest): void {
  connection.write(() => {
    connection.run('delete from tidemark_pauses where tenant_id = ? and until_at <= ?', tenantId, now)
    for (const pacer of pacers.length === 0 ? [''] : pacers) {
      connection.run(
        `insert into tidemark_pauses (tenant_id, connector_id, pacer, origin, until_at, noted_at) values (?, ?, ?, ?, ?, ?)
         on conflict do update set until_at = max(excluded.until_at, ${UNTIL.replaceAll(':now', 'excluded.noted_at')}), noted_at = excluded.noted_at`,
        tenantId, worker, pacer, origin, now + Math.ceil(ms), now,
      )
    }
  })
}

export function pauses({ connection, tenantId }: Session, { worker, at: now }: { worker: string; at: number }): Pauses {
  const found = connection.all<Pause>(
    `select pacer, origin, ${UNTIL.replaceAll(':now', '?')} as until from tidemark_pauses
     where tenant_id = ? and connector_id = ? and until_at > ? order by pacer, origin`,
    now, tenantId, worker, now,
  )
  return { now, pauses: found.map(({ pacer, origin, until }) => ({ pacer, origin, until })) }
}
