import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Project } from './project.ts'

describe('0: ok', () => {
  test('a completed cycle, and every read-only command', async () => {
    const project = Project.withWorker()
    for (const args of [
      ['run'],
      ['status'],
      ['query', 'select * from people'],
      ['doctor'],
      ['--help'],
      ['--version'],
      ['run', '--help'],
    ]) {
      expect(await project.run(...args), args.join(' ')).toMatchObject({ code: 0 })
    }
  })

  test('an exhausted budget is not a failure, and the next run continues', async () => {
    const project = Project.withWorker()
    const first = await project.run('run', 'people-list', '--max-pages', '1')
    expect(first).toMatchObject({ code: 0, stdout: expect.stringContaining('the next run continues here') })
    expect(await project.json('run', 'people-list')).toMatchObject({
      ok: true,
      syncs: [{ resumed: true, pages: 2, stop_reason: 'complete' }],
    })
  })
})

describe('1: failed', () => {
  test('a source that fails: the error says what happened, to what, and what to do', async () => {
    const project = Project.withWorker({ failure: { page: 1, message: 'the office is closed' } })
    await project.ask('run', 'room-changes')
    const { code, stdout, stderr } = await project.run('run')
    expect(code).toBe(1)
    // Rows are there, and still it is not the time to look at them.
    expect(stderr).not.toContain('Query it')
    expect(stdout).toMatch(/✗ people-list {2}CONNECTOR_FAILED {2}the office is closed \(at worker\.ts:\d+\)\n {2}\S.+/)
  })

  test('one sync fails and the others still run', async () => {
    const project = Project.withWorker({ failure: { page: 1, message: 'the office is closed' } })
    const { ok, syncs } = await project.json('run')
    expect([ok, ...syncs.map((sync: { stop_reason: string }) => sync.stop_reason)]).toEqual([
      false,
      'error',
      'complete',
    ])
  })

  test('a sweep above the delete limit stops; --allow-deletes confirms it', async () => {
    const project = Project.withWorker()
    await project.ask('run', 'people-list')
    project.source({ people: [{ id: 'p0001', name: 'Person 1' }] })
    const braked = await project.run('run', 'people-list')
    expect(braked).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('tidemark run people-list --allow-deletes'),
    })
    expect((await project.json('query', 'select * from people')).rows).toHaveLength(5)
    expect(await project.run('run', 'people-list', '--allow-deletes')).toMatchObject({ code: 0 })
    expect((await project.json('query', 'select * from people')).rows).toHaveLength(1)
  })

  test('a paused sync is a failure only if it is named', async () => {
    const project = Project.withWorker()
    await project.ask('pause', 'people-list')
    expect(await project.run('run', 'people-list')).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('tidemark resume people-list'),
    })
    expect(await project.run('run')).toMatchObject({ code: 0 })
  })
})

describe('2: invalid input', () => {
  test.each([
    ['an unknown verb, with the near one', ['stauts'], 'Did you mean status?'],
    ['an unknown flag, with the near one', ['run', '--fersh'], 'Did you mean --fresh?'],
    ['an unknown sync, with the near one', ['run', 'people-lst'], 'Did you mean "people-list"?'],
    ['an unknown sync to pause', ['pause', 'rooms-changes'], 'Did you mean "room-changes"?'],
    ['an unknown sync, with those there are', ['state', 'get', 'zzz'], 'It has people-list, room-changes'],
    ['a missing argument', ['preview'], "Missing required argument 'sync'"],
    ['a number that is none', ['run', '--max-pages', 'many'], 'It must be a whole number of at least 1'],
    ['a store that is none', ['status', '--store', 'mysql://localhost/x'], 'STORE_URL_INVALID'],
    ['a tenant that cannot be one', ['status', '--tenant', '../x'], 'NAME_INVALID'],
    ['a worker file that is not there', ['run', '--file', 'nowhere.ts'], 'WORKER_NOT_FOUND'],
    ['a query that writes', ['query', 'delete from people'], 'ARGUMENT_INVALID'],
    ['a query that writes a file', ['query', "vacuum into 'copy.db'"], 'ARGUMENT_INVALID'],
    ['a state that is not JSON', ['preview', 'people-list', '--state', '{next:2}'], 'is not valid JSON'],
  ])('%s', async (_, args, words) => {
    const project = Project.withWorker()
    if (args[0] === 'query') await project.ask('run')
    const { code, stdout, stderr } = await project.ask(...args)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(words)
    expect(stderr).toMatch(/error [A-Z_]+ {2}.+\n {6}\S/)
    expect(stderr).not.toMatch(/^\s+at /m)
  })

  test('a query is one statement on a read-only connection', async () => {
    const project = Project.withWorker()
    await project.ask('run')
    expect(await project.ask('query', 'select 1; drop table tidemark_commits')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('must be a single statement'),
    })
    expect((await project.ask('query', 'with x as (select 1) delete from tidemark_commits')).code).not.toBe(0)
    expect(await project.ask('query', 'select * from nowhere')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('no such table: nowhere. List the tables with `tidemark query`.'),
    })
    expect((await project.json('query', 'select count(*) as n from people -- all of it')).rows).toEqual([{ n: 5 }])
  })

  test('a worker that throws on load is reported with its location, with the stack only at debug', async () => {
    const project = Project.withWorker()
    project.write('worker.ts', "const x = 1\nthrow new Error('no such thing')\n")
    const plain = await project.run('status')
    expect(plain).toMatchObject({ code: 2, stderr: expect.stringContaining('worker.ts:2: no such thing') })
    expect(plain.stderr).not.toMatch(/^\s+at /m)
    expect((await project.run('status', { env: { TIDEMARK_LOG: 'debug' } })).stderr).toMatch(/^\s+at /m)
  })
})

describe('3: environment problem', () => {
  test('a store that cannot be opened', async () => {
    const project = Project.withWorker()
    project.write('file', '')
    expect(await project.run('run', '--store', 'sqlite:file/inside.db')).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('STORE_UNAVAILABLE'),
    })
    expect(await project.run('status', '--store', 'postgres://nobody@127.0.0.1:9/none')).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('STORE_UNAVAILABLE'),
    })
  })

  test('a password in a store URL is never shown', async () => {
    const project = Project.withWorker()
    const { stdout, stderr } = await project.run('status', '--store', 'postgres://nobody:hunter2@127.0.0.1:9/none', {
      env: { TIDEMARK_LOG: 'debug' },
    })
    expect(stdout + stderr).not.toContain('hunter2')
  })

  test('a file that is not a store', async () => {
    const project = Project.withWorker()
    project.write(
      'other.db',
      'this is not a database, but it is longer than the header of one would be, so it is read and refused',
    )
    expect(await project.run('run', '--store', 'sqlite:other.db')).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('STORE_FOREIGN'),
    })
    expect(await project.run('doctor', '--store', 'sqlite:other.db')).toMatchObject({ code: 3 })
  })

  test('doctor fails without a worker, and suggests the command that creates one', async () => {
    const project = new Project()
    expect(await project.run('doctor')).toMatchObject({ code: 3, stdout: expect.stringContaining('npx tidemark init') })
  })

  test.skipIf(process.getuid?.() === 0)('doctor finds a store that is not writable', async () => {
    const project = Project.withWorker()
    mkdirSync(join(project.folder, '.tidemark'))
    writeFileSync(join(project.folder, '.tidemark/tidemark.db'), '')
    chmodSync(join(project.folder, '.tidemark'), 0o500)
    expect(await project.run('doctor')).toMatchObject({ code: 3, stdout: expect.stringContaining('chmod u+w') })
  })
})

describe('output', () => {
  test('piped output has no colours; FORCE_COLOR enables them and NO_COLOR takes precedence', async () => {
    const project = Project.withWorker()
    const escape = String.fromCharCode(27)
    expect((await project.run('status')).stdout).not.toContain(escape)
    expect((await project.run('status', { env: { FORCE_COLOR: '1' } })).stdout).toContain(escape)
    expect((await project.run('status', { env: { FORCE_COLOR: '1', NO_COLOR: '1' } })).stdout).not.toContain(escape)
  })

  test('Z18 text from a source cannot move the cursor or start a line', async () => {
    const project = Project.withWorker({ failure: { page: 1, message: 'gone\u001b[2J\nok everything is fine' } })
    const { stdout } = await project.run('run', 'people-list')
    expect(stdout).toContain('gone\\u001b[2J ok everything is fine')
  })

  test('every command prints its worker, store and tenant', async () => {
    const project = Project.withWorker()
    expect((await project.run('status', '--tenant', 'acme')).stderr).toContain(
      'office (worker.ts) · sqlite:.tidemark/tidemark.db · tenant acme',
    )
  })

  test('a reader that closes the pipe, like head, causes no error', async () => {
    const project = Project.withWorker()
    const running = project.start('run', '--json')
    running.process.stdout!.destroy()
    expect(await running.ended).toMatchObject({ code: 0, stderr: '' })
    expect((await project.json('query', 'select count(*) as n from people')).rows).toEqual([{ n: 5 }])
  })
})
