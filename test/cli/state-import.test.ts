import { join } from 'node:path'
import { expect, test } from 'vitest'
import { people } from '../sources/singer/tap-fixture.ts'
import { Project } from './project.ts'

const TAP = join(import.meta.dirname, '../sources/singer/tap.mjs')
const STATE = { bookmarks: { people: { updated_at: '2026-01-01T00:00:05Z' }, teams: { updated_at: 'x' } } }

function create(): Project {
  const project = new Project()
  project.write(
    'world.json',
    JSON.stringify({ streams: { people: { rows: people(20) }, teams: { rows: [] } }, every: 5 }),
  )
  project.write('.env', 'TAP_KEY=secret')
  project.write('state.json', JSON.stringify(STATE))
  project.write(
    'tidemark.yaml',
    [
      'connector: singer',
      'config:',
      `  command: ["${process.execPath}", "${TAP}"]`,
      `  settings: { world: "${join(project.folder, 'world.json')}", api_key: "\${TAP_KEY}" }`,
      'streams:',
      '  - id: people',
      '  - id: all_teams',
      '    mode: full_refresh',
      '    options: { stream: teams }',
    ].join('\n'),
  )
  return project
}

test('the bookmark of a tap is taken over after a plan, audited, and the next run reads only what is newer', async () => {
  const project = create()
  const planned = await project.ask('state', 'import', 'people', '--singer', 'state.json')
  expect([planned.code, planned.stderr]).toEqual([2, expect.stringContaining('continues where the Singer tap stopped')])
  expect(planned.stderr).toContain('CONFIRMATION_NEEDED')
  expect(planned.stderr).not.toContain('2026-01-01')

  const done = await project.ask('state', 'import', 'people', '--singer', 'state.json', '--yes', '--json')
  expect([done.code, JSON.parse(done.stdout)]).toMatchObject([0, { sync: 'people', version: 1 }])
  const stored = await project.json('state', 'get', 'people', '--reveal')
  expect(stored['committed'].value).toEqual({ tap: { bookmarks: { people: STATE.bookmarks.people } } })
  const { entries } = await project.json('state', 'log', 'people')
  expect(entries).toMatchObject([{ action: 'set', reason: 'imported from the state of the Singer tap' }])
  expect(await project.json('state', 'verify')).toMatchObject({ intact: true })

  const run = await project.json('run', 'people')
  // The tap repeats the rows of its bookmark's own timestamp.
  const newer = people(20).filter(({ updated_at: at }) => String(at) >= STATE.bookmarks.people.updated_at).length
  expect(newer).toBeLessThan(20)
  expect(run['syncs'][0]).toMatchObject({ stop_reason: 'complete', counts: { created: newer } })
})

test('a file, a format or a sync that does not fit is refused with what to do', async () => {
  const project = create()
  project.write('broken.json', '{"bookmarks": ')
  const attempts: [string[], string][] = [
    [['people'], 'Name the state file with --singer <file> or --airbyte <file>'],
    [['people', '--singer', 'missing.json'], 'missing.json cannot be read'],
    [['people', '--singer', 'broken.json'], 'broken.json is not valid JSON'],
    [
      ['people', '--singer', 'state.json', '--stream', 'peple'],
      'Its bookmarks are people, teams. Did you mean "people"?',
    ],
    [['people', '--airbyte', 'state.json'], 'cannot take over the state of the Airbyte connection'],
    [['all_teams', '--singer', 'state.json'], 'cannot take over the state of the Singer tap'],
    [['poeple', '--singer', 'state.json'], 'Did you mean "people"?'],
  ]
  for (const [args, message] of attempts) {
    const { code, stderr } = await project.ask('state', 'import', ...args, '--yes')
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)])
  }
})
