import { describe, expect, test } from 'vitest'
import { chooseStrategy, nextQuestion, listRelevantQuestions, type Answers } from '../../src/advisor/index.ts'
import { everyLeaf } from './leaves.ts'

const other = (answers: Answers): Answers => ({ api: 'other', ...answers })

test.each([
  ['none', {}, 'whole', null],
  ['token', {}, 'token', ['cursor']],
  ['page', {}, 'pageNumber', ['page', 'pass']],
  ['offset', {}, 'offset', ['offset', 'pass']],
  ['graphql', { nested: 'no' }, 'relay', ['cursor', 'pace?']],
  ['graphql', { nested: 'yes' }, 'relayNested', ['cursor', 'outerDone?', 'nestedCursors?', 'pace?']],
  ['time', { ties: 'no' }, 'timestamp', ['cursor', 'untilMs?']],
  ['time', { ties: 'yes' }, 'keyset', ['cursorTimestamp', 'cursorId', 'untilMs?']],
] as const)('N85 a list by %s is read by %j', (paging, more, strategy, members) => {
  const { backfill } = chooseStrategy(other({ changes: 'none', paging, ...more, http: 'plain', size: 'small' }))
  expect(backfill.strategy).toBe(strategy)
  expect(backfill.state === null ? null : Object.keys(backfill.state)).toEqual(members)
})

test.each([
  [{ changes: 'events', paging: 'token' }, 'eventFeed'],
  [{ changes: 'timestamp', paging: 'token', order: 'time-and-id' }, 'keyset'],
  [{ changes: 'timestamp', paging: 'token', order: 'one-field' }, 'search'],
  [{ changes: 'timestamp', paging: 'token', order: 'unique' }, 'timestamp'],
  [{ changes: 'timestamp', paging: 'token', order: 'unsorted' }, 'window'],
  [{ changes: 'timestamp', paging: 'time', ties: 'yes' }, 'keyset'],
  [{ changes: 'sync-token' }, 'token'],
  [{ changes: 'newest-first' }, 'frontier'],
  [{ changes: 'none', paging: 'token' }, null],
] as const)('N86 changes by %j are followed by %s', (answers, strategy) => {
  const { delta, mode } = chooseStrategy(
    other({
      ...answers,
      deletes: answers.changes === 'newest-first' ? 'ignore' : 'reported',
      http: 'plain',
      lagSeconds: 30,
    }),
  )
  expect(delta?.strategy ?? null).toBe(strategy)
  expect(mode).toBe(strategy === null ? 'replace' : 'pair')
})

test.each([
  ['reported', 'pair', 'reported'],
  ['elsewhere', 'pair', 'streams'],
  ['matter', 'replace', 'swept'],
  ['ignore', 'pair', 'until-backfill'],
] as const)('N87 deletions that are %s: %s, %s', (deletes, mode, how) => {
  const advice = chooseStrategy(
    other({
      changes: 'timestamp',
      deletes,
      paging: 'token',
      order: 'time-and-id',
      http: 'plain',
      size: 'small',
      lagSeconds: 20,
    }),
  )
  expect(advice).toMatchObject({ mode, deletes: how, lagMs: mode === 'pair' ? 20_000 : null })
  expect(advice.delta === null).toBe(mode === 'replace')
  expect(advice.cautions.some((caution) => caution.includes('Deleted records stay'))).toBe(deletes === 'ignore')
})

test('N85 N77 every followed leaf that reads by time stays at least ten seconds behind', () => {
  for (const answers of everyLeaf()) {
    const { mode, delta, lagMs } = chooseStrategy(answers)
    if (mode === 'pair' && delta!.strategy !== 'token' && delta!.strategy !== 'frontier')
      expect(lagMs).toBeGreaterThanOrEqual(10_000)
  }
})

test('N86 changes in no order are never followed by position: the whole list instead', () => {
  for (const paging of ['page', 'offset', 'graphql'] as const) {
    expect(
      chooseStrategy(
        other({
          changes: 'timestamp',
          deletes: 'reported',
          paging,
          nested: 'no',
          order: 'unsorted',
          http: 'plain',
          size: 'small',
        }),
      ).mode,
    ).toBe('replace')
  }
})

describe('reasons', () => {
  test('every leaf gives a conclusion for each of its answers', () => {
    for (const answers of everyLeaf()) {
      const { reasons } = chooseStrategy(answers)
      const asked = listRelevantQuestions(answers).map(({ name }) => name)
      const own = answers.api === 'other' ? asked.slice(1) : asked
      expect(reasons.filter(({ question }) => own.includes(question)).map(({ question }) => question)).toEqual(own)
      for (const { answer, therefore } of reasons)
        expect([answer.length > 0, /^[A-Z`].{10,}\.$/.test(therefore)], therefore).toEqual([true, true])
    }
  })

  test('no question is asked whose answer is known, and none twice', () => {
    expect(nextQuestion({})?.name).toBe('api')
    expect(nextQuestion({ api: 'stripe' })).toBeNull()
    expect(nextQuestion(other({ changes: 'sync-token', deletes: 'reported' }))).toBeNull()
    // An answer that comes too early decides nothing before its turn.
    expect(nextQuestion({ paging: 'token', http: 'plain' })?.name).toBe('api')
  })
})
