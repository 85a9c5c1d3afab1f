import type { PacingStore, Pause } from '../../../contract/index.ts'
import { CLOCK_STEP_BACK_MS } from '../clock-step-back.ts'
import { defineRead, defineWrite, type PlansOf } from '../sql/port.ts'
import { required } from '../../../values/required.ts'

/** A clock that was set back does not extend a pause beyond its announced length. */
const PAUSE_END = '{least}(until_at, :now + until_at - noted_at)'

const PACER_CONDITION = 'tenant_id = :tenant and connector_id = :worker and pacer = :pacer'

export const PACING_PLANS = {
  takeSlots: defineWrite(function* (sql, { worker, pacer, count, paceMs, at }) {
    const lock = () =>
      sql.get<{ slot_at: number; taken_at: number; now: number }>(
        `select slot_at, taken_at, :now as now from {pacers} where ${PACER_CONDITION} {for_update}`,
        { worker, pacer, at },
      )
    let before = yield* lock()
    if (before === undefined) {
      yield* sql.run(
        `{insert_new} into {pacers} (tenant_id, connector_id, pacer, slot_at, taken_at)
         values (:tenant, :worker, :pacer, :now - :paceMs, :now) {or_nothing}`,
        { worker, pacer, paceMs, at },
      )
      before = required(yield* lock(), 'The row of the pacer')
    }
    const { slot_at: last, taken_at: taken, now } = before
    const behind = taken - now
    const first = Math.max(last + paceMs - (behind > CLOCK_STEP_BACK_MS ? behind : 0), now)
    yield* sql.send(`update {pacers} set slot_at = :last, taken_at = :taken where ${PACER_CONDITION}`, {
      worker,
      pacer,
      last: first + (count - 1) * paceMs,
      taken: now,
    })
    return { now, firstSlotAt: first }
  }),

  lastSlotTimes: defineRead(function* (sql, worker) {
    const found = yield* sql.all<{ pacer: string; slot_at: number }>(
      'select pacer, slot_at from {pacers} where tenant_id = :tenant and connector_id = :worker',
      { worker },
    )
    return Object.fromEntries(found.map(({ pacer, slot_at }) => [pacer, slot_at]))
  }),

  recordPause: defineWrite(function* (sql, { worker, pacers, origin, ms, at }) {
    // Always in the same order, so that two callers that record the same pacers cannot deadlock.
    for (const pacer of pacers.length === 0 ? [''] : pacers.toSorted()) {
      const values = { worker, pacer, origin, ms: Math.ceil(ms), at }
      const extend = () =>
        sql.run(
          `update {pauses} set until_at = {greatest}(:now + :ms, ${PAUSE_END}), noted_at = :now where ${PACER_CONDITION} and origin = :origin`,
          values,
        )
      if ((yield* extend()) > 0) continue
      const added = yield* sql.run(
        `{insert_new} into {pauses} (tenant_id, connector_id, pacer, origin, until_at, noted_at)
         values (:tenant, :worker, :pacer, :origin, :now + :ms, :now) {or_nothing}`,
        values,
      )
      if (added === 0) yield* extend()
    }
    yield* sql.run(sql.dialect.deleteSkipLocked('pauses', 'until_at <= :now'), { at })
  }),

  pauses: defineRead(function* (sql, { worker, at }) {
    const found = yield* sql.all<{ now: number; pacer: string | null; origin: string; until: number }>(
      `select n.now, p.pacer, p.origin, ${PAUSE_END} as until from (select :now as now) n
       left join {pauses} p on p.tenant_id = :tenant and p.connector_id = :worker and p.until_at > n.now order by p.pacer, p.origin`,
      { worker, at },
    )
    const pauses = found.flatMap(({ pacer, origin, until }): Pause[] =>
      pacer === null ? [] : [{ pacer, origin, until }],
    )
    return { now: required(found[0], 'The current time').now, pauses }
  }),
} satisfies PlansOf<PacingStore>
