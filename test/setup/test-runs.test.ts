import { expect, test } from 'vitest'
// @ts-expect-error: a script without types
import { testsOfRuns } from '../../scripts/test-runs.mjs'

type State = 'passed' | 'failed' | 'skipped'

function run(states: readonly State[], status = states.includes('failed') ? 'failed' : 'passed') {
  return {
    name: 'a.test.ts',
    status,
    assertionResults: states.map((state, n) => ({ fullName: `case ${n}`, status: state })),
  }
}

function states(...runs: ReturnType<typeof run>[]): string[] {
  return (testsOfRuns as (...given: unknown[]) => { state: string; failedOnce: boolean }[])(...runs).map(
    ({ state, failedOnce }) => (failedOnce ? `${state}, failed once` : state),
  )
}

test('a test that fails in one run of a file is a failure', () => {
  expect(states(run(['passed', 'failed', 'skipped']))).toEqual(['passed', 'failed, failed once', 'skipped'])
})

test('a test fails when it fails in both runs, and is listed when it fails in one', () => {
  expect(states(run(['failed', 'failed', 'passed']), run(['failed', 'passed', 'failed']))).toEqual([
    'failed, failed once',
    'passed, failed once',
    'passed, failed once',
  ])
})

test('a file that fails outside of its tests counts as one more test', () => {
  expect(states(run([], 'failed'))).toEqual(['failed, failed once'])
  expect(states(run([], 'failed'), run([], 'failed'))).toEqual(['failed, failed once'])
  expect(states(run([], 'failed'), run(['passed']))).toEqual(['passed', 'loaded, failed once'])
})

test('a file that fails to load the second time keeps the failures of the first', () => {
  expect(states(run(['failed', 'passed']), run([], 'failed'))).toEqual([
    'failed, failed once',
    'passed',
    'loaded, failed once',
  ])
})

test('tests with the same title are distinguished', () => {
  const twice = (...given: State[]) => ({
    name: 'a.test.ts',
    status: 'failed',
    assertionResults: given.map((status) => ({ fullName: 'same', status })),
  })
  expect(states(twice('failed', 'passed'), twice('failed', 'passed'))).toEqual(['failed, failed once', 'passed'])
})
