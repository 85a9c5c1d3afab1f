import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Project } from './project.ts'

async function ran(): Promise<Project> {
  const project = Project.withWorker()
  await project.ask('run', 'room-changes')
  await project.ask('run', 'room-changes')
  return project
}

const VALUE = async (project: Project): Promise<unknown> =>
  (await project.json('state', 'get', 'room-changes', '--reveal'))['committed']?.value

describe('NX4 Z23 manual state changes need a reason and are audited', () => {
  test('without --yes the plan is shown, the exit code is 2 and nothing changes', async () => {
    const project = await ran()
    for (const args of [
      ['set', 'room-changes', '{"seen":0}', '--reason', 'x'],
      ['reset', 'room-changes', '--reason', 'x'],
      ['rewind', 'room-changes', '--to', '1'],
    ]) {
      const { code, stdout, stderr } = await project.ask('state', ...args)
      expect([code, stdout]).toEqual([2, ''])
      expect(stderr).toMatch(
        /Plan for room-changes:[\s\S]+replaces[\s\S]+keeps[\s\S]+next cycle[\s\S]+CONFIRMATION_NEEDED/,
      )
    }
    expect(await project.json('state', 'get', 'room-changes')).toMatchObject({ version: 2 })
    expect((await project.json('state', 'log', 'room-changes'))['entries']).toHaveLength(2)
  })

  test('on a fresh project the plan makes no store', async () => {
    const project = Project.withWorker()
    expect(await project.ask('state', 'reset', 'room-changes', '--reason', 'x')).toMatchObject({ code: 2 })
    expect(await project.ask('state', 'get', 'room-changes')).toMatchObject({ code: 0 })
    expect(project.has('.tidemark')).toBe(false)
  })

  test('set, reset and rewind do what the plan says, each as a new version', async () => {
    const project = await ran()
    await project.ask('state', 'set', 'room-changes', '{"seen":7}', '--reason', 'skip', '--yes')
    expect(await VALUE(project)).toEqual({ seen: 7 })
    await project.ask('state', 'rewind', 'room-changes', '--to', '1', '--yes')
    expect(await VALUE(project)).toMatchObject({ seen: 1 })
    await project.ask('state', 'reset', 'room-changes', '--reason', 'again', '--yes')
    expect(await project.json('state', 'get', 'room-changes')).toMatchObject({ version: 5, committed: null })
    const { entries } = await project.json('state', 'log', 'room-changes')
    expect(entries.map(({ version, action, reason }: Record<string, unknown>) => [version, action, reason])).toEqual([
      [5, 'set', 'again'],
      [4, 'set', 'rewound to version 1'],
      [3, 'set', 'skip'],
      [2, 'complete', ''],
      [1, 'complete', ''],
    ])
    expect(entries[0].actor).toMatch(/^cli:.+@.+/)
    // The row it reads again is the row it has: nothing new in the log.
    expect(await project.json('run', 'room-changes')).toMatchObject({
      syncs: [{ counts: { created: 0, unchanged: 1 } }],
    })
  })

  test('the states of partitions are shown masked and in pages, copied, and removed by a reset', async () => {
    const project = Project.withWorker()
    project.write(
      'worker.ts',
      `import { partitioned, Worker } from 'tidemark'
       const worker = new Worker({ name: 'office' })
       const database = worker.database('tasks')
       const execute = partitioned<number, { token: string }>({
         list: async () => ({ partitions: ['a', 'b', 'c'].map((key, value) => ({ key, value })) }),
         read: async ({ key }) => ({ changes: [{ type: 'upsert', key, record: { key } }], hasMore: false, nextState: { token: 'hidden' } }),
       })
       worker.sync('tasks', { database, mode: 'incremental', execute })
       worker.sync('others', { database, mode: 'incremental', execute })
       export default worker`,
    )
    await project.ask('run', 'tasks')
    const shown = await project.ask('state', 'get', 'tasks', '--partitions', '2')
    expect(shown.stdout).toMatch(/partitions 3\n[\s\S]*^a +\d+ +#[0-9a-f]{8} \(\d+ bytes\)$[\s\S]*^b /m)
    expect(shown.stdout).not.toContain('hidden')
    const { partitions } = await project.json('state', 'get', 'tasks', '--after', 'b', '--reveal')
    expect(partitions).toMatchObject({
      count: 3,
      shown: [{ key: 'c', state: { value: { state: { token: 'hidden' } } } }],
    })
    expect(await project.ask('state', 'verify')).toMatchObject({ code: 0 })

    await project.ask('state', 'copy', 'tasks', 'others', '--yes')
    expect(await project.json('state', 'get', 'others')).toMatchObject({ partitions: { count: 3 } })
    const { stderr } = await project.ask('state', 'reset', 'tasks', '--reason', 'again')
    expect(stderr).toContain('the states of 3 partitions')
    await project.ask('state', 'reset', 'tasks', '--reason', 'again', '--yes')
    expect(await project.json('state', 'get', 'tasks')).toMatchObject({ committed: null, partitions: { count: 0 } })
  })

  test('a reason is required and must not be empty', async () => {
    const project = await ran()
    expect(await project.ask('state', 'reset', 'room-changes', '--yes')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--reason'),
    })
    expect(await project.ask('state', 'reset', 'room-changes', '--reason', ' ', '--yes')).toMatchObject({ code: 2 })
    expect(await project.json('state', 'get', 'room-changes')).toMatchObject({ version: 2 })
  })

  test('invalid JSON changes nothing and is not echoed', async () => {
    const project = await ran()
    const { code, stderr } = await project.ask(
      'state',
      'set',
      'room-changes',
      '{seen: kestrel}',
      '--reason',
      'x',
      '--yes',
    )
    expect(code).toBe(2)
    expect(stderr).toContain('ARGUMENT_INVALID')
    expect(stderr).not.toContain('kestrel')
    expect(await project.json('state', 'get', 'room-changes')).toMatchObject({ version: 2 })
  })

  test('a decision made on another version is refused', async () => {
    const project = await ran()
    const stale = await project.ask('state', 'reset', 'room-changes', '--reason', 'x', '--yes', '--if-version', '1')
    expect(stale).toMatchObject({ code: 1, stderr: expect.stringContaining('is at version 2, not 1') })
    expect(
      await project.ask('state', 'reset', 'room-changes', '--reason', 'x', '--yes', '--if-version', '2'),
    ).toMatchObject({ code: 0 })
  })

  test('an unknown version cannot be restored', async () => {
    const project = await ran()
    expect(await project.ask('state', 'rewind', 'room-changes', '--to', '9', '--yes')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('the newest are 2, 1'),
    })
  })

  test('an undeclared sync can still be shown and reset', async () => {
    const project = await ran()
    project.write('worker.ts', "import { Worker } from 'tidemark'\nexport default new Worker({ name: 'office' })\n")
    expect(await project.ask('state', 'reset', 'room-changes', '--reason', 'gone', '--yes')).toMatchObject({ code: 0 })
    expect(await project.json('state', 'get', 'room-changes')).toMatchObject({ version: 3, committed: null })
  })

  test('N6 changing the worker file resets no state', async () => {
    const project = await ran()
    const before = await VALUE(project)
    project.write(
      'worker.ts',
      readFileSync(join(project.folder, 'worker.ts'), 'utf8').replace('0 3 * * *', '0 4 * * *'),
    )
    expect(await VALUE(project)).toEqual(before)
  })
})

describe('R51 states are compared, copied and verified', () => {
  test('diff lists the fields that differ, and shows values only with --reveal', async () => {
    const project = await ran()
    await project.ask('state', 'set', 'room-changes', '{"seen":77,"more":{"deep":1}}', '--reason', 'x', '--yes')
    await project.ask('state', 'set', 'room-changes', '{"seen":77,"more":{"deep":2}}', '--reason', 'x', '--yes')
    const hidden = await project.ask('state', 'diff', 'room-changes', '3', '4')
    expect(hidden).toMatchObject({ code: 0, stdout: expect.stringMatching(/more\.deep +changed/) })
    expect(hidden.stdout).not.toContain('seen')
    expect(await project.json('state', 'diff', 'room-changes', '3', '4', '--reveal')).toMatchObject({
      differences: [{ path: 'more.deep', change: 'changed', from: '1', to: '2' }],
    })
    expect(await project.json('state', 'diff', 'room-changes', '4', '0')).toMatchObject({
      differences: [{ path: '(all)', change: 'removed' }],
    })
    expect(await project.ask('state', 'diff', 'room-changes', '4', '4')).toMatchObject({
      stdout: expect.stringContaining('the same state'),
    })
    expect(await project.ask('state', 'diff', 'room-changes', '9', '1')).toMatchObject({ code: 2 })
  })

  test('copy stores the state of another sync, after a plan, and is audited', async () => {
    const project = await ran()
    expect(await project.ask('state', 'copy', 'room-changes', 'people-list')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('CONFIRMATION_NEEDED'),
    })
    await project.ask('state', 'copy', 'room-changes', 'people-list', '--yes')
    const [from, to] = [
      await project.json('state', 'get', 'room-changes', '--reveal'),
      await project.json('state', 'get', 'people-list', '--reveal'),
    ]
    expect(to['committed'].value).toEqual(from['committed'].value)
    expect((await project.json('state', 'log', 'people-list'))['entries'][0]).toMatchObject({
      action: 'set',
      reason: 'copied from version 2 of room-changes',
    })
    expect(await project.ask('state', 'copy', 'room-changes', 'room-changes', '--yes')).toMatchObject({ code: 2 })
  })

  test('Z22 verify checks the audit log from the first entry to the head, and finds an earlier head', async () => {
    const project = await ran()
    const before = await project.json('state', 'verify')
    expect(before).toMatchObject({ intact: true, broken_at: null })
    await project.ask('state', 'reset', 'room-changes', '--reason', 'x', '--yes')
    expect(await project.json('state', 'verify', '--expect', before['head'])).toMatchObject({
      intact: true,
      holds_expected: true,
      entries: before['entries'] + 1,
    })
    expect(await project.ask('state', 'verify', '--expect', 'ff')).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('does not contain the expected head'),
    })
  })
})
