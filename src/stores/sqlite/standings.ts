import type { Standings, StandingsQuery } from '../../contract/index.ts'
import { OUTLINE_COLUMNS, type CycleRow, type OutlineEntry } from '../kit/registry-rows.ts'
import { joinStandings } from '../kit/standings.ts'
import type { Session } from './connection.ts'

/** While nothing was written to the file, by whomever, nothing moved; else all are told. */
export function standings({ connection, tenantId }: Session, { at, ref, since, recent }: StandingsQuery): Standings {
  const mark = connection.changeMark()
  if (mark === since) return { now: at, mark, syncs: [] }
  const which = ref === undefined ? 'true' : 'g.connector_id = ? and g.stream_id = ?'
  const given = ref === undefined ? [] : [ref.worker, ref.sync]
  const entries = connection.all<OutlineEntry>(`select ${OUTLINE_COLUMNS} from tidemark_registry g where g.tenant_id = ? and ${which}`, tenantId, ...given)
  const cycles = connection.all<CycleRow>(
    `select c.*, g.connector_id as worker, g.stream_id as sync from tidemark_registry g join tidemark_cycles c on c.cycle_id in (
       select cycle_id from tidemark_cycles where tenant_id = g.tenant_id and sync_id = g.sync_id order by cycle_id desc limit ?
     ) where g.tenant_id = ? and ${which} order by c.cycle_id desc`, recent, tenantId, ...given,
  )
  return { now: at, mark, syncs: joinStandings(entries, cycles) }
}
