import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SyncError, type Change, type Lookup } from '../../src/contract/index.ts'
import type { CycleResult } from '../../src/engine/cycle-options.ts'
import { toPartitionPlan } from '../../src/engine/partition-plan.ts'
import type { SyncPlan } from '../../src/engine/sync-plan.ts'
import { partitioned, type PartitionedOptions } from '../../src/strategies/partitioned.ts'
import { planColumns, type ColumnRules } from '../../src/transforms/column-rules.ts'
import { EngineFixture, planOf, ref } from './engine-fixture.ts'

let scene: EngineFixture
beforeEach(async () => void (scene = await EngineFixture.open()))
afterEach(() => scene.close())

/** Tasks by project, read two at a time. */
class Projects {
  readonly tasks = new Map<string, { project: string; version: number }>()
  readonly requests: string[] = []
  readonly listed: string[]
  failsAt = Infinity

  constructor(projects: readonly string[], tasksEach: number) {
    this.listed = [...projects]
    for (const project of projects)
      for (let n = 0; n < tasksEach; n++) this.tasks.set(`${project}${n}`, { project, version: 1 })
  }

  toUpsert(key: string): Change {
    const { project, version } = this.tasks.get(key)!
    return { type: 'upsert', key, record: { projectId: project, version, owner: 'a' } }
  }

  lookup: Lookup = async (key) => (this.tasks.has(key) ? this.toUpsert(key) : null)

  source(rows: PartitionedOptions<string, number>['rows']) {
    return partitioned<string, number>({
      ...(rows !== undefined && { rows }),
      list: async () => ({ partitions: this.listed.map((key) => ({ key, value: key })) }),
      read: async ({ key: project }, state = 0) => {
        this.requests.push(`${project} ${state}`)
        if (this.requests.length >= this.failsAt) throw new SyncError('SOURCE_UNAVAILABLE', 'gone')
        const keys = [...this.tasks].filter(([, task]) => task.project === project).map(([key]) => key)
        const changes = keys.slice(state, state + 2).map((key) => this.toUpsert(key))
        const hasMore = state + 2 < keys.length
        return { changes, hasMore, ...(hasMore && { nextState: state + 2 }) }
      },
    })
  }
}

const ROWS = { field: 'projectId', value: ({ value }: { value: string }) => value }
const FIXED = { ...ROWS, isFixed: true }

function planOfProjects(
  projects: Projects,
  { rows, ...options }: Partial<SyncPlan> & { rows?: typeof ROWS } = {},
): SyncPlan {
  return planOf({ mode: 'replace', execute: projects.source(rows), ...options })
}

const keys = async (): Promise<string[]> => (await scene.keys()).toSorted()
const expected = (projects: Projects): string[] => [...projects.tasks.keys()].toSorted()
const readPartition = (plan: SyncPlan, ...names: string[]): Promise<CycleResult> =>
  scene.run(toPartitionPlan(plan, names))

describe('a read of one partition', () => {
  test('reads only it, repairs its rows, and leaves the states of the sync and of its partitions alone', async () => {
    const projects = new Projects(['a', 'b', 'c'], 5)
    const plan = planOfProjects(projects, { rows: FIXED })
    await scene.run(plan)
    const [before, partitions] = [await scene.checkpoint(), await scene.store.partitions(ref('sync'), { limit: 9 })]
    for (const key of ['b1', 'c1']) projects.tasks.get(key)!.version = 2
    projects.tasks.set('b9', { project: 'b', version: 1 })
    projects.requests.length = 0
    expect(await readPartition(plan, 'b')).toMatchObject({ stopReason: 'complete', counts: { created: 1, updated: 1 } })
    expect(projects.requests).toEqual(['b 0', 'b 2', 'b 4'])
    expect([await scene.checkpoint(), await scene.store.partitions(ref('sync'), { limit: 9 })]).toEqual([
      before,
      partitions,
    ])
    expect((await scene.checkpoint('sync~range')).tidemark).toBeNull()
    expect(await keys()).toEqual(expected(projects))
    expect((await scene.rows())['c1']).toMatchObject({ version: 1 })
  })

  test('deletes the rows of this partition that the source no longer has, and none of another', async () => {
    const projects = new Projects(['a', 'b', 'c'], 5)
    const plan = planOfProjects(projects, { rows: FIXED })
    await scene.run(plan)
    for (const key of ['a1', 'b1', 'b2']) projects.tasks.delete(key)
    expect(await readPartition(plan, 'b')).toMatchObject({ stopReason: 'complete', counts: { swept: 2 } })
    expect(await keys()).toEqual([...expected(projects), 'a1'].toSorted())
    await readPartition(plan, 'a', 'c')
    expect(await keys()).toEqual(expected(projects))
  })

  test('never deletes a row that moved to another partition: the lookup has it', async () => {
    const projects = new Projects(['a', 'b'], 5)
    const plan = planOfProjects(projects, { rows: ROWS, lookup: projects.lookup })
    await scene.run(plan)
    projects.tasks.set('a1', { project: 'b', version: 2 })
    projects.tasks.delete('a2')
    expect((await readPartition(plan, 'a')).error).toMatchObject({ code: 'LISTING_INCOMPLETE' })
    expect(await keys()).toContain('a1')
    // The other partition returns it, and then its row says so.
    await readPartition(plan, 'b')
    expect(await readPartition(plan, 'a')).toMatchObject({ stopReason: 'complete', counts: { swept: 1 } })
    expect(await keys()).toEqual(expected(projects))
  })

  test('deletes nothing without a declared field, and without a lookup for rows that may move', async () => {
    const projects = new Projects(['a', 'b'], 5)
    for (const options of [{}, { rows: ROWS }]) {
      const plan = planOfProjects(projects, options)
      await scene.run(plan)
      const gone = projects.tasks.get('a1')!
      projects.tasks.delete('a1')
      expect(await readPartition(plan, 'a')).toMatchObject({ stopReason: 'complete', counts: { swept: 0 } })
      projects.tasks.set('a1', gone)
    }
  })

  test('a delete limit counts the rows of the partition', async () => {
    const projects = new Projects(['a', 'b', 'c', 'd'], 5)
    const plan = planOfProjects(projects, { rows: FIXED })
    await scene.run(plan)
    for (const key of ['a0', 'a1', 'a2']) projects.tasks.delete(key)
    expect((await readPartition(plan, 'a')).error).toMatchObject({ code: 'MASS_DELETE' })
    expect((await keys()).length).toBe(20)
    await scene.run(toPartitionPlan(plan, ['a']), { allowDeletes: true })
    expect(await keys()).toEqual(expected(projects))
    for (const key of ['a3', 'a4']) projects.tasks.delete(key)
    expect((await readPartition(plan, 'a')).error).toMatchObject({ code: 'MASS_DELETE' })
  })

  test('a lookup is asked also when an operator lifts the delete limit', async () => {
    const projects = new Projects(['a', 'b'], 2)
    const plan = planOfProjects(projects, { rows: ROWS, lookup: projects.lookup })
    await scene.run(plan)
    for (const key of ['a0', 'a1']) projects.tasks.set(key, { project: 'b', version: 2 })
    await scene.run(toPartitionPlan(plan, ['a']), { allowDeletes: true })
    expect(await keys()).toEqual(expected(projects))
  })

  test.each<[string, ColumnRules, boolean]>([
    ['a renamed field', { rename: { projectId: 'project' } }, true],
    ['a masked field', { mask: { projectId: 'a' } }, false],
    ['a dropped field', { drop: ['projectId'], rename: { owner: 'projectId' } }, false],
    ['a field that is not selected', { select: ['version'] }, false],
  ])('%s: the rows are found by the written column, or nothing is deleted', async (_, rules, isDeleted) => {
    const projects = new Projects(['a', 'b'], 3)
    const [database] = planOfProjects(projects).databases
    const plan = planOfProjects(projects, {
      rows: FIXED,
      databases: [{ ...database!, columns: planColumns(rules)! }],
    })
    await scene.run(plan)
    projects.tasks.delete('a1')
    expect(await readPartition(plan, 'a')).toMatchObject({ stopReason: 'complete' })
    expect((await keys()).includes('a1')).toBe(!isDeleted)
    expect((await keys()).length).toBe(isDeleted ? 5 : 6)
  })

  test('continues after a crash with the page that was not committed, and not for another partition', async () => {
    const projects = new Projects(['a', 'b'], 7)
    const plan = planOfProjects(projects, { rows: FIXED })
    await scene.run(plan)
    projects.tasks.delete('b6')
    projects.requests.length = 0
    projects.failsAt = 3
    const limits = { ...plan.limits, retriesMax: 0 }
    expect((await readPartition({ ...plan, limits }, 'b')).stopReason).toBe('error')
    projects.failsAt = Infinity
    projects.requests.length = 0
    expect(await readPartition(plan, 'b')).toMatchObject({ stopReason: 'complete', counts: { swept: 1 } })
    expect(projects.requests).toEqual(['b 4'])
    projects.failsAt = projects.requests.length + 3
    await readPartition({ ...plan, limits }, 'b')
    projects.failsAt = Infinity
    projects.requests.length = 0
    await readPartition(plan, 'a')
    expect(projects.requests[0]).toBe('a 0')
    expect(await keys()).toEqual(expected(projects))
  })

  test('refuses a partition that the source does not list, and a source without partitions', async () => {
    const projects = new Projects(['a'], 2)
    const plan = planOfProjects(projects, { rows: FIXED })
    await scene.run(plan)
    expect((await readPartition(plan, 'a', 'x')).error).toMatchObject({ code: 'ARGUMENT_INVALID' })
    expect(await keys()).toEqual(expected(projects))
    const other = planOf({ mode: 'replace', execute: async () => ({ changes: [], hasMore: false }) })
    expect(() => toPartitionPlan(other, ['a'])).toThrow('its source has no partitions')
    expect(() => toPartitionPlan(plan, [])).toThrow('1 to 100 keys')
  })

  test('an incremental sync reads the partition as its cycles do, and deletes nothing', async () => {
    const projects = new Projects(['a', 'b'], 3)
    const modes: string[] = []
    const source = partitioned<string, number>({
      rows: FIXED,
      list: async () => ({ partitions: projects.listed.map((key) => ({ key, value: key })) }),
      read: async ({ key: project }, state, { cycle }) => {
        modes.push(`${project} ${state ?? 'start'} ${cycle.mode}`)
        const found = [...projects.tasks].filter(([, task]) => task.project === project)
        return { changes: found.map(([key]) => projects.toUpsert(key)), hasMore: false, nextState: 1 }
      },
    })
    const plan = planOf({ execute: source })
    await scene.run(plan)
    projects.tasks.delete('a1')
    modes.length = 0
    for (let times = 0; times < 2; times++)
      expect(await readPartition(plan, 'a')).toMatchObject({ stopReason: 'complete', counts: { swept: 0 } })
    expect(modes).toEqual(['a start incremental', 'a start incremental'])
    expect(await keys()).toContain('a1')
  })
})
