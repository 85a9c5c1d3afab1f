import type { Pause, PauseRequest, Pauses } from '../../contract/index.ts'
import { textArray } from './arrays.ts'
import type { Session } from './connection.ts'
import { deleteUnlocked } from './delete-unlocked.ts'
import { NOW_MS } from './registry.ts'

/** A clock that was set back does not make a pause longer than it was announced. */
const UNTIL = `least(p.until_at, ${NOW_MS} + p.until_at - p.noted_at)`

export function notePause(session: Session, { worker, pacers, origin, ms }: PauseRequest): Promise<void> {
  return session.connection.write(session.tenant, async (transaction) => {
    // In one order for everybody, so that two who note the same pacers do not wait for each other.
    await transaction.run(
      `insert into tidemark.pauses as p (tenant_id, connector_id, pacer, origin, until_at, noted_at)
       select $1, $2, pacer, $4, ${NOW_MS} + $5::bigint, ${NOW_MS} from unnest($3::text[]) as pacer order by pacer collate "C"
       on conflict (tenant_id, connector_id, pacer, origin) do update set until_at = greatest(excluded.until_at, ${UNTIL}), noted_at = excluded.noted_at`,
      session.tenant, worker, textArray(pacers.length === 0 ? [''] : pacers), origin, Math.ceil(ms),
    )
    await deleteUnlocked(transaction, 'pauses', `until_at <= ${NOW_MS}`)
  })
}

export async function pauses(session: Session, { worker }: { worker: string }): Promise<Pauses> {
  const rows = await session.connection.read(session.tenant, (transaction) => transaction.all<Partial<Pause> & { now: number }>(
    `select n.now, p.pacer, p.origin, ${UNTIL} as until from (select ${NOW_MS} as now) n
     left join tidemark.pauses p on p.tenant_id = $1 and p.connector_id = $2 and p.until_at > n.now order by p.pacer, p.origin`,
    session.tenant, worker,
  ))
  return {
    now: rows[0]!.now,
    pauses: rows.flatMap(({ pacer, origin, until }) => (pacer == null ? [] : [{ pacer, origin: origin!, until: until! }])),
  }
}
