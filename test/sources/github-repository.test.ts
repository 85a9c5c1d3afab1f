import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { GithubSimulator } from '../../simulators/src/index.ts'
import { github, type GithubOptions } from '../../src/sources/github/source.ts'
import type { GithubRepository } from '../../src/sources/github/repository.ts'
import { MINUTE } from '../engine/engine-fixture.ts'
import { VendorFixture } from './vendor-fixture.ts'

let stage: VendorFixture<GithubSimulator>
let vendor: GithubSimulator
let repository: string

beforeEach(async () => {
  stage = await VendorFixture.open((ports) => new GithubSimulator(ports))
  vendor = stage.vendor
  repository = vendor.create('repository', { owner: 'acme', name: 'app' })
})
afterEach(() => stage.close())

const source = (options: Partial<GithubOptions> = {}): GithubRepository =>
  github({ token: 'GITHUB_TOKEN', ...options }).repository('acme/app')
const create = (type: string, count: number, gapMs = 1_000): string[] =>
  Array.from({ length: count }, (_, n) => {
    stage.pass(gapMs)
    return vendor.create(type, { repository, title: `t${n}` })
  })
const truth = (...types: string[]): Record<string, unknown> =>
  Object.fromEntries(types.flatMap((type) => vendor.restTruth(type)).map((row) => [String(row['node_id']), row]))

describe('issues', () => {
  test('the backfill reads issues and pull requests, the delta only what changed since', async () => {
    const ids = create('issue', 150)
    create('pull_request', 3)
    stage.track(source().issues)
    await stage.backfill()
    expect(await stage.rows()).toEqual(truth('issue', 'pull_request'))
    await stage.delta()
    vendor.update('issue', ids[7]!, { title: 'changed', state: 'closed' })
    stage.asked()
    await stage.delta()
    // A page that does not begin at the cursor is requested twice.
    expect(stage.asked().length).toBeLessThanOrEqual(3)
    expect(await stage.rows()).toEqual(truth('issue', 'pull_request'))
  })

  test('an issue that is deleted while the list is read hides no other', async () => {
    const ids = create('issue', 250)
    stage.track(source().issues)
    await stage.backfill({ onRequest: (request) => request === 3 && vendor.remove('issue', ids[0]!) })
    expect(Object.keys(await stage.rows())).toEqual(expect.arrayContaining(Object.keys(truth('issue'))))
    await stage.backfill({ allowDeletes: true })
    expect(await stage.rows()).toEqual(truth('issue'))
  })

  test('an issue that changes while the list is read is not deleted', async () => {
    const ids = create('issue', 250)
    stage.track(source().issues)
    await stage.backfill()
    await stage.backfill({
      onRequest: (request) => request === 2 && vendor.update('issue', ids[200]!, { title: 'changed' }),
    })
    expect(await stage.rows()).toEqual(truth('issue'))
  })

  test('a page of another request does not end the list', async () => {
    create('issue', 250)
    stage.track(source().issues)
    await stage.backfill()
    vendor.faults.plan(
      { kind: 'duplicate-page' },
      { times: 1, on: (request) => request.url.includes('/issues?') && request.url.includes('since=') },
    )
    expect((await stage.backfill()).stopReason).not.toBe('complete')
    await stage.backfill()
    expect(await stage.rows()).toEqual(truth('issue'))
  })

  test('more issues of one second than a page holds are read by page number', async () => {
    create('issue', 30)
    const ids = create('issue', 320, 0)
    create('issue', 20)
    stage.track(source().issues)
    await stage.backfill()
    expect(await stage.rows()).toEqual(truth('issue'))
    await stage.delta()
    stage.pass(MINUTE)
    for (const id of ids) vendor.update('issue', id, { title: 'changed' })
    await stage.delta({ afterMs: MINUTE })
    expect(await stage.rows()).toEqual(truth('issue'))
    stage.asked()
    stage.pass(MINUTE)
    await stage.delta()
    // The next cycle begins after the second that was read completely.
    expect(stage.asked().length).toBeLessThanOrEqual(2)
  })

  test('an issue that leaves the second while its pages are read hides no other', async () => {
    const ids = create('issue', 320, 0)
    stage.track(source().issues)
    await stage.backfill({
      onRequest: (request) => request === 5 && vendor.update('issue', ids[3]!, { title: 'changed' }),
    })
    expect(await stage.rows()).toEqual(truth('issue'))
    const again = create('issue', 320, 0)
    await stage.delta({
      afterMs: MINUTE,
      onRequest: (request) => request === 4 && vendor.remove('issue', again[3]!),
    })
    expect(Object.keys(await stage.rows())).toEqual(expect.arrayContaining(Object.keys(truth('issue'))))
  })

  test('a page of another request does not end the issues of one second', async () => {
    create('issue', 320, 0)
    stage.track(source().issues)
    vendor.faults.plan({ kind: 'duplicate-page' }, { times: 1, on: (request) => request.url.includes('&page=3') })
    await stage.backfill()
    expect(await stage.rows()).toEqual(truth('issue'))
  })
})

describe('pull requests', () => {
  test('the delta reads the newest changes up to the last window', async () => {
    const ids = create('pull_request', 230)
    stage.track(source().pullRequests)
    await stage.backfill()
    await stage.delta()
    expect(await stage.rows()).toEqual(truth('pull_request'))
    stage.pass(10 * MINUTE)
    for (const id of ids.slice(0, 130)) vendor.update('pull_request', id, { title: 'changed' })
    stage.asked()
    await stage.delta({
      onRequest: (request) => request === 2 && vendor.update('pull_request', ids[140]!, { title: 'changed meanwhile' }),
    })
    // Two pages, and the last one again.
    expect(stage.asked()).toHaveLength(3)
    await stage.delta()
    expect(await stage.rows()).toEqual(truth('pull_request'))
  })

  test('a repeated page of the delta is not taken for the next one', async () => {
    const ids = create('pull_request', 130)
    stage.track(source().pullRequests)
    await stage.backfill()
    await stage.delta()
    for (const id of ids) vendor.update('pull_request', id, { title: 'changed' })
    vendor.faults.plan({ kind: 'duplicate-page' }, { times: 1, on: (request) => request.url.includes('page=2') })
    expect((await stage.delta()).stopReason).not.toBe('complete')
    await stage.delta()
    expect(await stage.rows()).toEqual(truth('pull_request'))
  })
})

describe('a wrong answer', () => {
  /** An answer to the first request that the vendor did not give to it. */
  const answerFirst = (answer: unknown): { spoil: (body: unknown) => unknown } => {
    let requests = 0
    return { spoil: (body) => (++requests === 1 ? answer : body) }
  }

  test('an earlier page of pull requests loses no change', async () => {
    const ids = create('pull_request', 5)
    stage.track(source().pullRequests)
    await stage.backfill()
    stage.pass(MINUTE)
    vendor.update('pull_request', ids[0]!, { title: 'at the border' })
    let earlier: unknown
    await stage.delta({ afterMs: 16_000, spoil: (body) => (earlier = body) })
    vendor.update('pull_request', ids[1]!, { title: 'changed' })
    await stage.delta(answerFirst(earlier))
    await stage.delta()
    expect(await stage.rows()).toEqual(truth('pull_request'))
  })

  test('a page of pull requests in another order is not taken for the newest', async () => {
    const ids = create('pull_request', 130)
    stage.track(source().pullRequests)
    const pages: unknown[] = []
    await stage.backfill({ spoil: (body) => (pages.push(body), body) })
    await stage.delta()
    vendor.update('pull_request', ids[1]!, { title: 'changed' })
    expect((await stage.delta(answerFirst(pages.at(-1)))).error).toMatchObject({ code: 'SOURCE_INVALID' })
    await stage.delta()
    expect(await stage.rows()).toEqual(truth('pull_request'))
  })

  test('the last page of issues for the first one loses no change and deletes none', async () => {
    const ids = create('issue', 130)
    stage.track(source().issues)
    await stage.backfill()
    await stage.delta()
    for (const id of ids) {
      stage.pass(1_000)
      vendor.update('issue', id, { title: 'changed' })
    }
    await stage.delta(answerFirst(vendor.restTruth('issue').slice(-40)))
    await stage.delta()
    expect(await stage.rows()).toEqual(truth('issue'))
    await stage.backfill({ ...answerFirst(vendor.restTruth('issue').slice(-90)), allowDeletes: true })
    expect(await stage.rows()).toEqual(truth('issue'))
  })

  test('a delta that is interrupted before its first cursor does not keep its horizon', async () => {
    const ids = create('issue', 5)
    stage.list({ mode: 'incremental', execute: source().issues.delta })
    await stage.backfill({ pagesMax: 1 })
    for (const id of ids) vendor.update('issue', id, { title: 'changed' })
    await stage.backfill()
    await stage.backfill()
    expect(await stage.rows()).toEqual(truth('issue'))
  })

  test.each([
    ['without its records', () => []],
    ['with its first record only', (records: unknown[]) => records.slice(0, 1)],
  ])('a page of issues %s ends no list', async (_, spoil) => {
    create('issue', 250)
    stage.track(source().issues)
    await stage.backfill()
    let requests = 0
    await stage.backfill({ allowDeletes: true, spoil: (body) => (++requests === 3 ? spoil(body) : body) })
    expect(await stage.rows()).toEqual(truth('issue'))
  })
})

test.for(['issueComments', 'reviewComments'] as const)('%s are followed by their time of change', async (name) => {
  const type = name === 'issueComments' ? 'issue_comment' : 'review_comment'
  const ids = create(type, 120)
  stage.track(source()[name])
  await stage.backfill()
  vendor.update(type, ids[3]!, { body: 'changed' })
  await stage.delta()
  expect(await stage.rows()).toEqual(truth(type))
  vendor.remove(type, ids[4]!)
  await stage.backfill({ allowDeletes: true })
  expect(await stage.rows()).toEqual(truth(type))
})

test.for([
  ['labels', 'label'],
  ['milestones', 'milestone'],
  ['releases', 'release'],
  ['workflowRuns', 'workflow_run'],
] as const)('%s are listed', async ([name, type]) => {
  const ids = create(type, 130)
  stage.list(source()[name])
  await stage.backfill()
  expect(await stage.rows()).toEqual(truth(type))
  vendor.remove(type, ids[2]!)
  vendor.update(type, ids[3]!, { name: 'changed', title: 'changed', state: 'closed' })
  await stage.backfill({ onRequest: (request) => request === 2 && vendor.remove(type, ids[0]!) })
  await stage.backfill({ allowDeletes: true })
  expect(await stage.rows()).toEqual(truth(type))
})

test('stargazers are listed with the time of their star', async () => {
  create('stargazer', 5)
  stage.list(source().stargazers)
  await stage.backfill()
  const stars = vendor.restTruth('stargazer').map((row) => [(row['user'] as { node_id: string }).node_id, row])
  expect(await stage.rows()).toEqual(Object.fromEntries(stars))
})

describe('commits', () => {
  const shas = (): string[] => vendor.restTruth('commit').map(({ sha }) => String(sha))

  test('all pages are those of the first one, whatever is pushed meanwhile', async () => {
    create('commit', 250)
    const before = shas()
    stage.list(source().commits)
    await stage.backfill({ onRequest: (request) => request === 2 && create('commit', 3) })
    expect(Object.keys(await stage.rows())).toEqual(expect.arrayContaining(before))
    const pinned = stage.asked().flatMap(({ query }) => new URLSearchParams(query).get('sha') ?? [])
    expect([pinned.length, new Set(pinned)]).toEqual([2, new Set([before.at(-1)])])
    await stage.backfill()
    expect(Object.keys(await stage.rows()).toSorted()).toEqual(shas().toSorted())
  })

  test('a repeated page is not taken for the next one', async () => {
    create('commit', 250)
    stage.list(source().commits)
    vendor.faults.plan({ kind: 'duplicate-page' }, { times: 1, on: (request) => request.url.includes('page=2') })
    expect((await stage.backfill()).error).toMatchObject({ code: 'SOURCE_INVALID' })
    await stage.backfill()
    expect(Object.keys(await stage.rows()).toSorted()).toEqual(shas().toSorted())
  })
})

describe('a start date and a range', () => {
  test.for([
    ['issues', 'issue'],
    ['pullRequests', 'pull_request'],
  ] as const)('%s: only those that changed at or after it, by both halves', async ([name, type]) => {
    create(type, 3)
    stage.pass(MINUTE)
    const since = `${new Date(stage.scene.clock.now() + 1_000).toISOString().slice(0, 19)}Z`
    const young = create(type, 2)
    stage.track(source({ since })[name])
    await stage.backfill()
    expect(Object.keys(await stage.rows()).toSorted()).toEqual(young.toSorted())
    await stage.delta()
    expect(Object.keys(await stage.rows()).toSorted()).toEqual(young.toSorted())
  })

  test.for([
    ['issues', 'issue'],
    ['pullRequests', 'pull_request'],
    ['commits', 'commit'],
  ] as const)('%s: a range has the records from its start up to, not at, its end', async ([name, type]) => {
    stage.pass(1_000 - (stage.scene.clock.now() % 1_000))
    const startMs = stage.scene.clock.now()
    create(type, 5)
    const at = (second: number): string => new Date(startMs + second * 1_000).toISOString()
    const stream = source()[name]
    const range = 'backfill' in stream ? stream.backfill.range : stream.execute.range
    stage.list({ mode: 'replace', execute: range!({ from: at(2), to: at(4) }) })
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete' })
    const keys = vendor.restTruth(type).map((row) => String(row['sha'] ?? row['node_id']))
    expect(Object.keys(await stage.rows()).toSorted()).toEqual(keys.slice(1, 3).toSorted())
  })
})

test.each([
  ['the primary limit', { kind: 'rate-limit' }],
  ['the secondary limit', { kind: 'rate-limit', secondary: true }],
] as const)('%s is a wait', async (_, fault) => {
  create('issue', 3)
  stage.track(source().issues)
  await stage.backfill()
  vendor.faults.plan(fault, { times: 1 })
  expect((await stage.delta()).error).toMatchObject({ code: 'RATE_LIMITED' })
})

test('a repository that is not owner/name is refused', () => {
  expect(() => github({ token: 'T' }).repository('acme')).toThrow(/owner\/name/)
})
