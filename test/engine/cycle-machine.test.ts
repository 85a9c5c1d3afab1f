import { describe, expect, test } from 'vitest'
import {
  advance,
  CYCLE_TABLE,
  FIRST_STEP,
  type ActiveCycleState,
  type CycleEvent,
  type CycleState,
} from '../../src/engine/cycle-machine.ts'

const STATES = Object.keys(CYCLE_TABLE) as ActiveCycleState[]
const EVENTS = Object.keys(CYCLE_TABLE.beginning) as CycleEvent[]
const CELLS = STATES.flatMap((state) => EVENTS.map((event) => ({ state, event, cell: CYCLE_TABLE[state][event] })))

describe('the table of the cycle', () => {
  test('has a cell for every pair of state and event', () => {
    expect(CELLS.filter(({ cell }) => cell === undefined)).toEqual([])
    for (const state of STATES) expect(Object.keys(CYCLE_TABLE[state])).toEqual(EVENTS)
  })

  test('a transition returns its step; an impossible pair throws an internal error that names both', () => {
    for (const { state, event, cell } of CELLS) {
      if (cell !== 'impossible') expect(advance(state, event)).toEqual(cell)
      else
        expect(() => advance(state, event)).toThrow(
          expect.objectContaining({ code: 'INTERNAL', message: `The event ${event} is impossible while ${state}.` }),
        )
    }
  })

  test('every state is reachable from the first step, and the end from every state', () => {
    expect(reachableFrom(FIRST_STEP.state)).toEqual(new Set([...STATES, 'ending']))
    for (const state of STATES) expect(reachableFrom(state)).toContain('ending')
  })

  test('every event is possible in some state, and every state has an event other than a failure', () => {
    const transitions = CELLS.filter(({ cell }) => cell !== 'impossible')
    expect(new Set(transitions.map(({ event }) => event))).toEqual(new Set(EVENTS))
    const regular = transitions.filter(({ event }) => event !== 'failed')
    expect(new Set(regular.map(({ state }) => state))).toEqual(new Set(STATES))
  })

  test('a failure ends the cycle in every state', () => {
    for (const state of STATES) expect(advance(state, 'failed')).toEqual({ action: 'endCycle', state: 'ending' })
  })

  test('a page is recorded only after it landed, and the next page is awaited only after that', () => {
    const into = (action: string) =>
      CELLS.flatMap(({ state, event, cell }) =>
        cell !== 'impossible' && cell.action === action ? [`${state} ${event}`] : [],
      )
    expect(into('recordPage')).toEqual(['committing landed', 'abandoning landed'])
    expect(into('awaitNextPage')).toEqual(['recording more'])
  })

  test('an overlap is read again, unless the cycle is abandoned', () => {
    expect(advance('committing', 'overlap')).toEqual({ action: 'readAfterOverlap', state: 'reading' })
    expect(advance('abandoning', 'overlap').state).toBe('ending')
  })
})

function reachableFrom(start: CycleState): Set<CycleState> {
  const reached = new Set<CycleState>([start])
  for (const state of reached) {
    if (state === 'ending') continue
    for (const cell of Object.values(CYCLE_TABLE[state])) if (cell !== 'impossible') reached.add(cell.state)
  }
  return reached
}
