import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { expectGolden } from './golden.ts'
import { people, Project } from './project.ts'

/** Every document of `--json`, word for word. TIDEMARK_UPDATE=1 writes the files. */
describe('documents', () => {
  test('run: its progress and its result', async () => {
    const project = Project.withWorker({ people: [...people(4), { id: 'p9', name: 'Nobody', bad: true }] })
    expectGolden('run', project, await project.ask('run', 'people-list', '--json'))
  })

  test('run: a failure, and a run that resumes the cycle', async () => {
    const project = Project.withWorker({ failure: { page: 2, message: 'the office is closed' } })
    expectGolden('run-failed', project, await project.ask('run', 'people-list', '--json'))
    project.source({})
    expectGolden('run-resumed', project, await project.ask('run', 'people-list', '--json'))
  })

  test('preview', async () => {
    const project = Project.withWorker()
    expectGolden('preview', project, await project.ask('preview', 'people-list', '--json'))
    expectGolden(
      'preview-reveal',
      project,
      await project.ask('preview', 'people-list', '--state', '{"next":4,"Odd_Name":1}', '--reveal', '--json'),
    )
  })

  test('NX5 status: never run, healthy, failed, paused, and a sync that is no longer declared', async () => {
    const project = Project.withWorker()
    expectGolden('status-never-run', project, await project.ask('status', '--json'))
    await project.ask('run')
    await project.ask('pause', 'room-changes')
    project.source({ failure: { page: 1, message: 'the office is closed' } })
    await project.ask('run', 'people-list')
    expectGolden('status', project, await project.ask('status', '--json'))
    project.write('worker.ts', "import { Worker } from 'tidemark'\nexport default new Worker({ name: 'office' })\n")
    expectGolden('status-undeclared', project, await project.ask('status', '--json'))
  })

  test('NX4 state: get, log, set, reset and rewind', async () => {
    const project = Project.withWorker()
    await project.ask('run', 'room-changes')
    await project.ask('run', 'room-changes')
    expectGolden('state-get', project, await project.ask('state', 'get', 'room-changes', '--json'))
    expectGolden('state-get-reveal', project, await project.ask('state', 'get', 'room-changes', '--reveal', '--json'))
    expectGolden(
      'state-set',
      project,
      await project.ask('state', 'set', 'room-changes', '{"seen":0}', '--reason', 'a test', '--yes', '--json'),
    )
    expectGolden(
      'state-rewind',
      project,
      await project.ask('state', 'rewind', 'room-changes', '--to', '1', '--yes', '--json'),
    )
    expectGolden(
      'state-reset',
      project,
      await project.ask('state', 'reset', 'room-changes', '--reason', 'a test', '--yes', '--json'),
    )
    expectGolden('state-log', project, await project.ask('state', 'log', 'room-changes', '--json'))
    expectGolden(
      'state-needs-yes',
      project,
      await project.ask('state', 'reset', 'room-changes', '--reason', 'a test', '--json'),
    )
  })

  test('quarantine: list, show and replay', async () => {
    const project = Project.withWorker({
      people: [...people(2), { id: 'p9', name: 'Nobody', bad: true }, { id: '', name: 'Keyless' }],
    })
    expectGolden('quarantine-empty', project, await project.ask('quarantine', 'list', '--json'))
    await project.ask('run', 'people-list')
    expectGolden('quarantine-list', project, await project.ask('quarantine', 'list', '--json'))
    expectGolden('quarantine-show', project, await project.ask('quarantine', 'show', '1', '--json'))
    expectGolden('quarantine-show-reveal', project, await project.ask('quarantine', 'show', '1', '--reveal', '--json'))
    expectGolden('quarantine-unknown', project, await project.ask('quarantine', 'show', '7', '--json'))
    project.write(
      'worker.ts',
      readFileSync(join(project.folder, 'worker.ts'), 'utf8').replace('const: false', 'enum: [false, true]'),
    )
    expectGolden('quarantine-replay-needs-yes', project, await project.ask('quarantine', 'replay', '--json'))
    expectGolden('quarantine-replay', project, await project.ask('quarantine', 'replay', '--yes', '--json'))
    expectGolden(
      'quarantine-replayed',
      project,
      await project.ask('quarantine', 'list', '--database', 'people', '--json'),
    )
    expect((await project.ask('query', "select name from people where id = 'p9'", '--json')).stdout).toContain('Nobody')
  })

  test('schema: show, plan and apply', async () => {
    const project = Project.withWorker({ people: people(3) })
    await project.ask('run', 'people-list')
    expectGolden('schema-plan-nothing', project, await project.ask('schema', 'plan', 'people', '--json'))
    // A value of another type, and a member that waits.
    project.source({ people: [...people(2), { id: 'p0003', name: { first: 'Ann' } as unknown as string }] })
    expect((await project.ask('run', 'people-list')).stdout).toContain(
      'people.name: a value of type json does not fit the column of type text',
    )
    expect((await project.ask('status')).stdout).toContain('Run `tidemark schema plan people`.')
    expect((await project.ask('doctor')).stdout).toContain('columns of people')
    expectGolden('schema-show', project, await project.ask('schema', 'show', 'people', '--json'))
    expectGolden('schema-plan', project, await project.ask('schema', 'plan', 'people', '--json'))
    expectGolden(
      'schema-apply-needs-yes',
      project,
      await project.ask('schema', 'apply', 'people', '--rename', 'name=called', '--json'),
    )
    expectGolden(
      'schema-apply',
      project,
      await project.ask('schema', 'apply', 'people', '--reason', 'a test', '--yes', '--json'),
    )
    expectGolden('schema-applied', project, await project.ask('schema', 'show', 'people', '--json'))
    expect(
      (await project.ask('schema', 'apply', 'people', '--rename', 'name=called', '--drop', 'id', '--yes')).stdout,
    ).toContain('Changed the columns of people')
    expect((await project.ask('query', 'select called from people order by _key', '--json')).stdout).toContain('Ann')
    expect((await project.ask('status')).stdout).not.toContain('schema plan')
    expectGolden('schema-unknown', project, await project.ask('schema', 'show', 'peple', '--json'))
    expect((await project.ask('schema', 'plan', 'people', '--widen', 'name=biggint')).stderr).toContain(
      'Unknown type "biggint". Did you mean "bigint"?',
    )
    expectGolden(
      'schema-widen-refused',
      project,
      await project.ask('schema', 'plan', 'people', '--widen', 'name=text', '--json'),
    )
  })

  test('schema show, query, why and run of a database with soft deletes', async () => {
    const project = Project.withWorker({ people: people(5) })
    const worker = readFileSync(join(project.folder, 'worker.ts'), 'utf8')
    project.write(
      'worker.ts',
      worker.replace("worker.database('people', {", "worker.database('people', { deletes: 'soft',"),
    )
    await project.ask('run', 'people-list')
    project.source({ people: people(4) })
    expect((await project.ask('run', 'people-list')).code).toBe(0)
    expect((await project.ask('schema', 'show', 'people')).stdout).toContain(
      'people: 5 rows (1 deleted, with _deleted_at), 1 earlier versions',
    )
    expectGolden('schema-show-soft', project, await project.ask('schema', 'show', 'people', '--json'))
    expect((await project.ask('query', '--json')).stdout).toContain('"rows":4')
    expect(
      (await project.ask('query', 'select _key from people where _deleted_at is not null', '--json')).stdout,
    ).toContain('p0005')
    expect((await project.ask('why', 'people', 'p0005')).stdout).toMatch(/deleted|swept/)
    // One page, so that nothing is removed before it is shown.
    project.write('worker.ts', worker)
    project.source({ people: people(4), pageSize: 10 })
    await project.ask('run', 'people-list')
    expect((await project.ask('schema', 'show', 'people')).stdout).toContain(
      '5 rows (1 deleted, with _deleted_at; deletes are hard now, and these rows are being purged)',
    )
    await project.ask('run', 'people-list')
    expect((await project.ask('schema', 'show', 'people')).stdout).toContain('people: 4 rows, 1 earlier versions')
  })

  test('pause, resume, trigger', async () => {
    const project = Project.withWorker()
    for (const verb of ['pause', 'trigger', 'resume'])
      expectGolden(verb, project, await project.ask(verb, 'people-list', '--json'))
  })

  test('why-not: never read, quarantined, swept, and what the source has now', async () => {
    const project = Project.withWorker({ people: [...people(3), { id: 'p9', name: 'Nobody', bad: true }] })
    expectGolden('why-not-never-read', project, await project.ask('why-not', 'people', 'p0001', '--json'))
    await project.ask('run', 'people-list')
    expectGolden('why-not-present', project, await project.ask('why-not', 'people', 'p0001', '--no-ask', '--json'))
    expectGolden('why-not-quarantined', project, await project.ask('why-not', 'people', 'p9', '--json'))
    project.source({ people: people(2) })
    await project.ask('run', 'people-list')
    expectGolden('why-not-swept', project, await project.ask('why-not', 'people', 'p0003', '--json'))
    project.source({ people: [...people(2), { id: 'p0004', name: 'Late', updatedAt: '2099-01-01T00:00:00Z' }] })
    expectGolden('why-not-not-yet', project, await project.ask('why-not', 'people', 'p0004', '--json'))
    expectGolden('why-not-not-in-source', project, await project.ask('why-not', 'people', 'P0001', '--json'))
    expectGolden('why-not-unknown-database', project, await project.ask('why-not', 'poeple', 'p0001', '--json'))
  })

  test('query and why', async () => {
    const project = Project.withWorker()
    // One after the other: side by side, either may land first.
    for (const sync of ['people-list', 'room-changes']) await project.ask('run', sync)
    expectGolden(
      'query',
      project,
      await project.ask('query', 'select name, id, _sequence from people order by id', '--limit', '2', '--json'),
    )
    expectGolden('query-list', project, await project.ask('query', '--json'))
    project.source({ people: [{ id: 'p0001', name: 'Renamed' }, ...people(5).slice(2)] })
    await project.ask('run', 'people-list')
    expectGolden('why', project, await project.ask('why', 'people', 'p0001', '--json'))
    expectGolden('why-swept', project, await project.ask('why', 'people', 'p0002', '--reveal', '--json'))
    // Changes that were compacted are reported as such, not as if they had never existed.
    const store = await openSqliteStore({ file: join(project.folder, '.tidemark/tidemark.db') })
    await store.compact({ before: Number.MAX_SAFE_INTEGER, scanMax: 1_000 }).finally(() => store.close())
    const renamed = await project.ask('why', 'people', 'p0001')
    expect([renamed.stdout.match(/updated/g)?.length, renamed.stdout.includes('created'), renamed.stderr]).toEqual([
      1,
      false,
      expect.stringContaining('Earlier changes are older than the log retention and were deleted.'),
    ])
    expect((await project.ask('why', 'people', 'p0002')).stdout).toContain(
      'Entries older than the log retention are deleted.',
    )
  })

  test('doctor', async () => {
    const project = Project.withWorker({ people: [{ id: 'p9', name: 'Nobody', bad: true }] })
    expectGolden('doctor-fresh', project, await project.ask('doctor', '--json'))
    await project.ask('run')
    expectGolden('doctor', project, await project.ask('doctor', '--json'))
  })

  test('init', async () => {
    const project = new Project()
    expectGolden('init', project, await project.ask('init', 'harbour', '--json'))
    expectGolden('init-refused', project, await project.ask('init', 'harbour', '--json'))
  })

  test('errors', async () => {
    const project = Project.withWorker()
    expectGolden('error-sync-unknown', project, await project.ask('run', 'people-lst', '--json'))
    expectGolden('error-verb-unknown', project, await project.ask('stauts', '--json'))
    expectGolden('error-option-unknown', project, await project.ask('run', '--allow-delete', '--json'))
    expectGolden('error-store-missing', project, await project.ask('query', 'select 1', '--json'))
  })
})
