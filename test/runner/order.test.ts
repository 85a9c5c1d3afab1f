import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { nextOf, priorityOf, type Shares, type Waiting } from '../../src/runner/order.ts'
import { MINUTE, SECOND } from './scene.ts'

interface Named extends Waiting {
  readonly name: string
}

describe('the line of those who are due', () => {
  test('SX7: a trigger before the changes before a full listing, unless the worker says otherwise', () => {
    expect(priorityOf({ mode: 'replace', priority: 0 }, 'trigger')).toBe(100)
    expect(priorityOf({ mode: 'incremental', priority: 0 }, 'schedule')).toBe(40)
    expect(priorityOf({ mode: 'replace', priority: 0 }, 'unfinished')).toBe(20)
    expect(priorityOf({ mode: 'replace', priority: 55 }, 'retry')).toBe(55)
    expect(priorityOf({ mode: 'replace', priority: 55 }, 'trigger')).toBe(100)
    expect(priorityOf({ mode: 'replace', priority: 500 }, 'trigger')).toBe(500)
  })

  test('SX7: of those who wait since the same moment the higher goes first, of equals the one who waits longer', () => {
    const line = [entry('backfill', 0, 20), entry('late delta', 5 * SECOND, 40), entry('delta', 0, 40), entry('trigger', 0, 100)]
    expect(serve(line).map(({ name }) => name)).toEqual(['trigger', 'delta', 'late delta', 'backfill'])
  })

  test('XB19: whoever has waited long enough goes before a higher one that just came', () => {
    expect(nextOf([entry('backfill', 0, 20), entry('delta', 3 * MINUTE, 40)], EVEN)!.name).toBe('delta')
    expect(nextOf([entry('backfill', 0, 20), entry('delta', 4 * MINUTE, 40)], EVEN)!.name).toBe('backfill')
  })

  test('XB19: one that just came passes nobody who has waited longer than its head start', () => {
    const comer = fc.record({ since: fc.integer({ min: 0, max: 100 * MINUTE }), priority: fc.integer({ min: -200, max: 200 }) })
    fc.assert(fc.property(fc.array(comer, { minLength: 2, maxLength: 40 }), (comers) => {
      const line = serve(comers.map(({ since, priority }, index) => entry(String(index), since, priority)))
      line.forEach((later, index) => {
        for (const earlier of line.slice(0, index)) {
          expect(earlier.since - later.since).toBeLessThanOrEqual((earlier.priority - later.priority) * 10 * SECOND)
        }
      })
    }))
  })

  test('XB19, XF18: the tenant with the fewest running goes first, then the one served longest ago', () => {
    const line = [entry('noisy', 0, 100, 'big'), entry('quiet', MINUTE, 20, 'small')]
    const shares = (big: number, small: number, turns: Record<string, number> = {}): Shares =>
      ({ running: (tenant) => (tenant === 'big' ? big : small), lastTurn: (tenant) => turns[tenant] ?? 0 })
    expect(nextOf(line, shares(3, 0))!.name).toBe('quiet')
    expect(nextOf(line, shares(0, 1))!.name).toBe('noisy')
    expect(nextOf(line, shares(0, 0, { big: 9, small: 4 }))!.name).toBe('quiet')
    expect(nextOf(line, shares(0, 0))!.name).toBe('noisy')
  })

  test('nobody waits: nobody is next', () => {
    expect(nextOf([], EVEN)).toBeNull()
  })
})

const EVEN: Shares = { running: () => 0, lastTurn: () => 0 }

function entry(name: string, since: number, priority: number, tenant = 'default'): Named {
  return { name, since, priority, tenant }
}

function serve(line: readonly Named[]): Named[] {
  const left = new Set(line)
  const served: Named[] = []
  for (let next = nextOf(left, EVEN); next !== null; next = nextOf(left, EVEN)) {
    left.delete(next)
    served.push(next)
  }
  return served
}
