import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { CYCLE_TABLE, FIRST_STEP, type CycleEvent } from '../../src/engine/cycle-machine.ts'
import { ROOT } from '../cli/package.ts'

const PAGE = readFileSync(join(ROOT, 'docs/explanation/cycle.md'), 'utf8')
const TRANSITIONS = Object.entries(CYCLE_TABLE).flatMap(([state, row]) =>
  Object.entries(row).flatMap(([event, cell]) =>
    cell === 'impossible' ? [] : [[state, event, cell.action, cell.state]],
  ),
)

test('the page shows every transition of the machine, in its order, and no other', () => {
  expect(rowsOf('Transitions')).toEqual(TRANSITIONS)
})

test('the page describes every state, and what a crash in it leaves', () => {
  expect(rowsOf('States').map(([state]) => state)).toEqual([...Object.keys(CYCLE_TABLE), 'ending'])
})

test('the page describes every event', () => {
  const events = Object.keys(CYCLE_TABLE.beginning) as CycleEvent[]
  expect(rowsOf('Events').map(([event]) => event)).toEqual(events)
})

test('the page names the first action', () => {
  expect(PAGE).toContain(`starts in \`${FIRST_STEP.state}\` with the action \`${FIRST_STEP.action}\``)
})

/** The cells of the table below a heading, without the header and without backticks. */
function rowsOf(heading: string): string[][] {
  const section = PAGE.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? ''
  return section
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim().replaceAll('`', '')),
    )
}
