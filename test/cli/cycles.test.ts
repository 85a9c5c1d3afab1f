import { describe, expect, test } from 'vitest'
import { expectGolden } from './golden.ts'
import { Project } from './project.ts'

describe('cycles', () => {
  test('lists the cycles of a sync, newest first, with their end', async () => {
    const project = Project.withWorker()
    await project.ask('run', 'people-list')
    project.source({ failure: { page: 1, message: 'the office is closed' } })
    await project.ask('run', 'people-list')
    expectGolden('cycles', project, await project.ask('cycles', 'people-list', '--json'))
    const { stdout } = await project.ask('cycles', 'people-list')
    const [head, newest, oldest, error] = stdout.split('\n')
    expect(head).toMatch(/^STARTED +SYNC +CYCLE +END +TOOK +PAGES +ROWS$/)
    expect(newest).toMatch(/people-list +2 +CONNECTOR_FAILED .* no rows$/)
    expect(oldest).toMatch(/people-list +1 +complete .* 5 created$/)
    expect(error).toContain('the office is closed')
    const failed = JSON.parse((await project.ask('cycles', '--failed', '--json')).stdout) as {
      cycles: { cycle: number }[]
    }
    expect(failed.cycles.map(({ cycle }) => cycle)).toEqual([2])
    const limited = JSON.parse((await project.ask('cycles', '--limit', '1', '--json')).stdout) as { cycles: object[] }
    expect(limited.cycles).toHaveLength(1)
  })

  test('a sync that is unknown, and a store that is empty', async () => {
    const project = Project.withWorker()
    expect((await project.ask('cycles')).stdout).toContain('No cycle has run yet.')
    const unknown = await project.ask('cycles', 'poeple-list')
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('people-list') })
  })
})

describe('run', () => {
  test('a pattern runs every sync that it matches, and the summary counts them', async () => {
    const project = Project.withWorker()
    const { stdout, code } = await project.ask('run', 'peo*', 'room-changes', 'room-*')
    expect(code).toBe(0)
    expect(stdout).toContain('2 syncs: 2 ok. 6 rows.')
    await project.ask('run', '*-list')
    const { cycles } = JSON.parse((await project.ask('cycles', '--json')).stdout) as { cycles: { sync: string }[] }
    expect(cycles.map(({ sync }) => sync).toSorted()).toEqual(['people-list', 'people-list', 'room-changes'])
  })

  test('the summary names the failed syncs with their cause and the next step', async () => {
    const project = Project.withWorker({ failure: { page: 1, message: 'the office is closed' } })
    const { stdout, code } = await project.ask('run', '*')
    expect(code).toBe(1)
    expect(stdout).toContain('2 syncs: 1 ok, 1 failed. 1 row.')
    expect(stdout).toContain('\n  CONNECTOR_FAILED: people-list\n')
    expect(stdout).toContain('Run `tidemark preview people-list')
  })

  test('a pattern that matches nothing names the syncs, and nothing runs', async () => {
    const project = Project.withWorker()
    const answer = await project.ask('run', 'poeple-*')
    expect(answer).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/matches "poeple-\*"\. It has .*people-list/),
    })
    expect((await project.ask('cycles')).stdout).toContain('No cycle has run yet.')
  })
})
