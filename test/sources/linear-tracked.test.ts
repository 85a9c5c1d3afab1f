import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { LinearSimulator } from '../../simulators/src/index.ts'
import { linear, type LinearOptions } from '../../src/sources/linear/source.ts'
import { ENTITY_FIELDS, type EntityName } from '../../src/sources/linear/entities.ts'
import { MINUTE, SECOND } from '../engine/engine-fixture.ts'
import { VendorFixture } from './vendor-fixture.ts'

let stage: VendorFixture<LinearSimulator>
let vendor: LinearSimulator
let team: string

beforeEach(async () => {
  stage = await VendorFixture.open((ports) => new LinearSimulator(ports))
  vendor = stage.vendor
  team = vendor.create('team', { name: 'Team', key: 'T' })
})
afterEach(() => stage.close())

const source = (options: Partial<LinearOptions> = {}): ReturnType<typeof linear> =>
  linear({ apiKey: 'LINEAR_KEY', ...options })
const fill = (count: number): string[] =>
  Array.from({ length: count }, (_, n) => vendor.create('issue', { team, title: `i${n}` }))
const titles = async (): Promise<unknown> =>
  Object.fromEntries(Object.entries(await stage.rows()).map(([key, row]) => [key, (row as { title: string }).title]))
const truth = (): unknown => Object.fromEntries(vendor.truth('issue').map(({ id, title }) => [id, title]))

describe('the delta', () => {
  test('reads only the records that changed, and the backfill finds those that were deleted', async () => {
    const ids = fill(150)
    stage.track(source().tracked.issues)
    await stage.backfill()
    await stage.delta()
    vendor.update('issue', ids[3]!, { title: 'changed' })
    vendor.remove('issue', ids[4]!)
    stage.asked()
    await stage.delta()
    expect(stage.asked()).toHaveLength(2)
    stage.asked()
    await stage.delta()
    expect(stage.asked()).toHaveLength(1)
    expect(await titles()).toMatchObject({ [ids[3]!]: 'changed', [ids[4]!]: 'i4' })
    await stage.backfill({ allowDeletes: true })
    expect(await titles()).toEqual(truth())
  })

  test('a record that changes at the border of two windows is read', async () => {
    const ids = fill(3)
    stage.track(source().tracked.issues)
    await stage.backfill()
    await stage.delta()
    const { since } = await stage.state()
    vendor.records.clockBackMs = stage.scene.clock.now() - Date.parse(since)
    vendor.update('issue', ids[0]!, { title: 'at the border' })
    vendor.records.clockBackMs = 0
    await stage.delta()
    expect(await titles()).toEqual(truth())
  })

  test('a record that changes while a window is read shifts no page', async () => {
    const ids = fill(40)
    stage.track(source({ limit: 10 }).tracked.issues)
    await stage.backfill()
    ids.forEach((id) => vendor.update('issue', id, { title: 'changed' }))
    await stage.delta({
      onRequest: (request) => {
        if (request === 2) [0, 15, 25, 39].forEach((n) => vendor.update('issue', ids[n]!, { title: 'changed again' }))
      },
    })
    await stage.delta()
    expect(await titles()).toEqual(truth())
  })

  interface Connection {
    nodes: { updatedAt: string }[]
    pageInfo: { hasNextPage: boolean }
  }
  const endEarly = (connection: Connection): Connection => ({ ...connection, pageInfo: { hasNextPage: false } })
  const WRONG: Record<string, (connection: Connection) => Connection> = {
    'without the rest of the list': endEarly,
    'that lacks half of its records and the rest of the list': ({ nodes, ...connection }) =>
      endEarly({ ...connection, nodes: nodes.slice(nodes.length >> 1) }),
    'without records': (connection) => endEarly({ ...connection, nodes: [] }),
  }

  test.for(Object.keys(WRONG).flatMap((wrong) => [1, 2, 3, 4].map((at) => [wrong, at] as const)))(
    'an answer %s loses no change: request %i',
    async ([wrong, at]) => {
      const ids = fill(35)
      stage.track(source({ limit: 10 }).tracked.issues)
      await stage.backfill()
      ids.forEach((id) => vendor.update('issue', id, { title: 'changed' }))
      let requests = 0
      await stage.delta({
        spoil: ({ data }) => ({ data: { issues: ++requests === at ? WRONG[wrong]!(data.issues) : data.issues } }),
      })
      await stage.delta()
      expect(await titles()).toEqual(truth())
    },
  )

  test('an earlier answer loses no change', async () => {
    const ids = fill(5)
    stage.track(source().tracked.issues)
    await stage.backfill()
    stage.pass(MINUTE)
    vendor.update('issue', ids[0]!, { title: 'at the border' })
    let earlier: unknown
    await stage.delta({ afterMs: 16_000, spoil: (body) => (earlier = body) })
    vendor.update('issue', ids[1]!, { title: 'changed' })
    let requests = 0
    await stage.delta({ spoil: (body) => (++requests === 1 ? earlier : body) })
    await stage.delta()
    expect(await titles()).toEqual(truth())
  })

  test('a page of the complete list is not taken for the changes', async () => {
    const ids = fill(5)
    stage.track(source().tracked.issues)
    let list: unknown
    await stage.backfill({ spoil: (body) => (list = body) })
    await stage.delta()
    vendor.update('issue', ids[1]!, { title: 'changed' })
    expect((await stage.delta({ spoil: () => list })).error).toMatchObject({ code: 'SOURCE_INVALID' })
    await stage.delta()
    expect(await titles()).toEqual(truth())
  })

  test('an archived record is deleted, and returns when it is restored', async () => {
    const ids = fill(3)
    stage.track(source().tracked.issues)
    await stage.backfill()
    vendor.update('issue', ids[1]!, { archived: true })
    await stage.delta()
    expect(Object.keys(await stage.rows())).not.toContain(ids[1])
    stage.pass(MINUTE)
    vendor.update('issue', ids[1]!, { archived: false })
    await stage.delta()
    expect(Object.keys(await stage.rows())).toContain(ids[1])
  })

  test('an archived record is kept on request, by both halves', async () => {
    const ids = fill(3)
    vendor.update('issue', ids[0]!, { archived: true })
    stage.track(source({ includeArchived: true }).tracked.issues)
    await stage.backfill()
    vendor.update('issue', ids[1]!, { archived: true })
    await stage.delta()
    const archived = Object.values(await stage.rows()).filter((row) => (row as any).archivedAt !== null)
    expect(archived).toHaveLength(2)
    await stage.backfill()
    expect(Object.keys(await stage.rows())).toHaveLength(3)
  })
})

describe('a start date and a range', () => {
  async function fillOverTime(): Promise<{ ids: string[]; since: string; until: string }> {
    const before = fill(2)
    stage.pass(60 * SECOND)
    const since = new Date(stage.scene.clock.now()).toISOString()
    const between = fill(2)
    stage.pass(60 * SECOND)
    const until = new Date(stage.scene.clock.now()).toISOString()
    return { ids: [...before, ...between, ...fill(2)], since, until }
  }

  test('only records that changed since the start date are copied, also older ones', async () => {
    const { ids, since } = await fillOverTime()
    stage.track(source({ since }).tracked.issues)
    await stage.backfill()
    expect(Object.keys(await stage.rows()).toSorted()).toEqual(ids.slice(2).toSorted())
    vendor.update('issue', ids[0]!, { title: 'changed' })
    await stage.delta()
    await stage.backfill()
    expect(Object.keys(await stage.rows())).toHaveLength(5)
  })

  test('a delta without a backfill begins at the start date', async () => {
    const { ids, since } = await fillOverTime()
    stage.list({ mode: 'incremental', execute: source({ since }).tracked.issues.delta })
    await stage.backfill()
    expect(Object.keys(await stage.rows()).toSorted()).toEqual(ids.slice(2).toSorted())
  })

  test('a range contains the records that changed from its start up to, not at, its end', async () => {
    const { ids, since, until } = await fillOverTime()
    const { range } = source().issues.execute
    stage.list({ mode: 'replace', execute: range!({ from: since, to: until }) })
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete' })
    expect(Object.keys(await stage.rows()).toSorted()).toEqual(ids.slice(2, 4).toSorted())
  })
})

const TYPES = {
  attachments: 'attachment',
  comments: 'comment',
  cycles: 'cycle',
  documents: 'document',
  initiatives: 'initiative',
  issueLabels: 'issueLabel',
  projectMilestones: 'projectMilestone',
  projects: 'project',
  users: 'user',
  workflowStates: 'workflowState',
} as const

test.for(Object.entries(TYPES))('%s: are listed, followed and looked up', async ([name, type]) => {
  const ids = Array.from({ length: 3 }, () => vendor.create(type, {}))
  const pair = source().tracked[name as EntityName]
  stage.track(pair)
  await stage.backfill()
  expect(await stage.rows()).toEqual(stage.truth(type))
  vendor.update(type, ids[0]!, { name: 'changed', title: 'changed', body: 'changed', description: 'changed' })
  vendor.create(type, {})
  await stage.delta()
  expect(await stage.rows()).toEqual(stage.truth(type))
  vendor.remove(type, ids[1]!)
  await stage.backfill({ allowDeletes: true })
  expect(await stage.rows()).toEqual(stage.truth(type))
})

test('disabled users are not left out', async () => {
  const id = vendor.create('user', { active: false })
  stage.list(source().users)
  await stage.backfill()
  expect(Object.keys(await stage.rows())).toEqual([id])
})

test('every entity type has a test', () => {
  expect(Object.keys(ENTITY_FIELDS).toSorted()).toEqual([...Object.keys(TYPES), 'issues', 'teams'].toSorted())
})
