import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DueQueue } from '../../src/runner/due-queue.ts'
import { computePriority, type TenantLoad, type QueueItem } from '../../src/runner/queue-order.ts'
import { MINUTE, SECOND } from './runner-fixture.ts'

interface Named extends QueueItem {
  readonly name: string
}

describe('the queue of due syncs', () => {
  test('SX7: triggers before incremental syncs before full listings, unless the worker sets a priority', () => {
    expect(computePriority({ mode: 'replace', priority: 0 }, 'trigger')).toBe(100)
    expect(computePriority({ mode: 'incremental', priority: 0 }, 'schedule')).toBe(40)
    expect(computePriority({ mode: 'replace', priority: 0 }, 'unfinished')).toBe(20)
    expect(computePriority({ mode: 'replace', priority: 55 }, 'retry')).toBe(55)
    expect(computePriority({ mode: 'replace', priority: 55 }, 'trigger')).toBe(100)
    expect(computePriority({ mode: 'replace', priority: 500 }, 'trigger')).toBe(500)
  })

  test('SX7: of items that are due since the same time the higher priority goes first, of equal ones the longer waiting', () => {
    const line = [
      entry('backfill', 0, 20),
      entry('late delta', 5 * SECOND, 40),
      entry('delta', 0, 40),
      entry('trigger', 0, 100),
    ]
    expect(serve(line).map(({ name }) => name)).toEqual(['trigger', 'delta', 'late delta', 'backfill'])
  })

  test('XB19: an item that has waited long enough goes before a new one with higher priority', () => {
    expect(nextOf([entry('backfill', 0, 20), entry('delta', 3 * MINUTE, 40)], EVEN)!.name).toBe('delta')
    expect(nextOf([entry('backfill', 0, 20), entry('delta', 4 * MINUTE, 40)], EVEN)!.name).toBe('backfill')
  })

  test('XB19: a new item passes none that has waited longer than its head start', () => {
    const comer = fc.record({
      since: fc.integer({ min: 0, max: 100 * MINUTE }),
      priority: fc.integer({ min: -200, max: 200 }),
    })
    fc.assert(
      fc.property(fc.array(comer, { minLength: 2, maxLength: 40 }), (comers) => {
        const line = serve(comers.map(({ since, priority }, index) => entry(String(index), since, priority)))
        line.forEach((later, index) => {
          for (const earlier of line.slice(0, index)) {
            expect(earlier.dueSince - later.dueSince).toBeLessThan(
              (earlier.priority - later.priority) * 10 * SECOND + SECOND,
            )
          }
        })
      }),
    )
  })

  test('XB19, XF18: the tenant with the fewest running goes first, then the one served longest ago', () => {
    const line = [entry('noisy', 0, 100, 'big'), entry('quiet', MINUTE, 20, 'small')]
    const shares = (big: number, small: number, turns: Record<string, number> = {}): TenantLoad => ({
      runningCycles: (tenant) => (tenant === 'big' ? big : small),
      lastServed: (tenant) => turns[tenant] ?? 0,
    })
    expect(nextOf(line, shares(3, 0))!.name).toBe('quiet')
    expect(nextOf(line, shares(0, 1))!.name).toBe('noisy')
    expect(nextOf(line, shares(0, 0, { big: 9, small: 4 }))!.name).toBe('quiet')
    expect(nextOf(line, shares(0, 0))!.name).toBe('noisy')
  })

  test('an empty queue has no next item', () => {
    expect(nextOf([], EVEN)).toBeNull()
  })
})

describe('the due queue', () => {
  test('XB19: an item becomes ready at its time, not before, and once', () => {
    const item = fc.record({
      tenant: fc.constantFrom('a', 'b', 'c'),
      at: fc.integer({ min: 0, max: 50 }),
      since: fc.integer({ min: 0, max: 9_000 }),
      again: fc.option(fc.integer({ min: 0, max: 60 }), { nil: null }),
      gone: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(item, { maxLength: 60 }), fc.integer({ min: 0, max: 60 }), (items, glance) => {
        const agenda = new DueQueue<Named>()
        const expected = new Map<Named, number>()
        items.forEach(({ tenant, at, since, again, gone }, index) => {
          const named = entry(String(index), since, 0, tenant)
          agenda.schedule(named, at)
          expected.set(named, at)
          if (index % 7 === 0) agenda.nextAt(glance)
          if (again !== null) {
            agenda.schedule(named, again === 60 ? Infinity : again)
            if (again === 60) expected.delete(named)
            else expected.set(named, again)
          }
          if (gone) {
            agenda.remove(named)
            expected.delete(named)
          }
        })
        for (let now = glance; now <= 60; now += 5) {
          const due = [...expected].filter(([, at]) => at <= now || at <= glance).map(([named]) => named)
          expect(agenda.readyCount(now)).toBe(due.length)
          expect(agenda.nextAt(now)).toBe(due.length > 0 ? now : Math.min(Infinity, ...expected.values()))
          const served = due.map(() => agenda.takeNext(now, EVEN)!)
          expect(new Set(served)).toEqual(new Set(due))
          expect(agenda.takeNext(now, EVEN)).toBeNull()
          for (const named of due) expected.delete(named)
          for (const tenant of ['a', 'b', 'c']) {
            const places = served
              .filter((named) => named.tenant === tenant)
              .map(({ dueSince: since }) => Math.floor(since / SECOND))
            expect(places).toEqual(places.toSorted((a, b) => a - b))
          }
        }
      }),
    )
  })

  test('processes that start together each begin with a different sync', () => {
    const line = [
      { ...entry('a', 0, 0), tieBreaker: 0.9 },
      { ...entry('b', 500, 0), tieBreaker: 0.1 },
      { ...entry('c', 0, 0), tieBreaker: 0.5 },
    ]
    expect(serve(line).map(({ name }) => name)).toEqual(['b', 'c', 'a'])
  })
})

const EVEN: TenantLoad = { runningCycles: () => 0, lastServed: () => 0 }

function entry(name: string, since: number, priority: number, tenant = 'default'): Named {
  return { name, dueSince: since, priority, tenant, tieBreaker: 0 }
}

function agendaOf(line: readonly Named[]): DueQueue<Named> {
  const agenda = new DueQueue<Named>()
  for (const named of line) agenda.schedule(named, 0)
  return agenda
}

function nextOf(line: readonly Named[], shares: TenantLoad): Named | null {
  return agendaOf(line).takeNext(0, shares)
}

function serve(line: readonly Named[]): Named[] {
  const agenda = agendaOf(line)
  return line.map(() => agenda.takeNext(0, EVEN)!)
}
