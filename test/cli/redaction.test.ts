import { expect, test } from 'vitest'
import { Project } from './project.ts'

const CANARY = 'kestrel'

test('Z16 no command shows a state or a cursor, at any log level, without --reveal', { timeout: 240_000 }, async () => {
  const project = Project.withWorker()
  const said: string[] = []
  const say = async (...args: readonly string[]): Promise<void> => {
    for (const json of [[], ['--json']]) {
      const { stdout, stderr } = await project.ask(...args, ...json, { env: { TIDEMARK_LOG: 'debug' } })
      said.push(stdout, stderr)
    }
  }
  await say('preview', 'people-list')
  await say('run', 'people-list', '--max-pages', '1')
  await say('run', 'room-changes')
  await say('preview', 'people-list')
  await say('preview', 'room-changes', '--state', `{"seen":1,"canary":"${CANARY}"}`)
  await say('status')
  await say('status', '--all')
  await say('state', 'get', 'people-list')
  await say('state', 'get', 'room-changes')
  await say('state', 'log', 'room-changes')
  await say('state', 'set', 'room-changes', `{"seen":0,"canary":"${CANARY}"}`, '--reason', 'x')
  await say('state', 'set', 'room-changes', `{"seen":0,"canary":"${CANARY}"}`, '--reason', 'x', '--yes')
  await say('state', 'set', 'room-changes', `{"canary":"${CANARY}"`, '--reason', 'x', '--yes')
  await say('state', 'rewind', 'room-changes', '--to', '1', '--yes')
  await say('state', 'reset', 'room-changes', '--reason', 'x', '--yes')
  await say('why', 'rooms', 'r1')
  await say('pause', 'people-list')
  await say('resume', 'people-list')
  await say('trigger', 'people-list')
  await say('doctor')
  await say('run', '--fresh')
  expect(said.join('\n')).not.toContain(CANARY)
  // The search is able to find.
  expect((await project.ask('state', 'get', 'room-changes', '--reveal')).stdout).toContain(CANARY)
})

test('Z16 a tidemark that is a cursor is shown as a digest, one that is a time as is', async () => {
  const project = Project.withWorker()
  project.write(
    'worker.ts',
    `
    import { Worker } from 'tidemark'
    const worker = new Worker({ name: 'office' })
    worker.sync('s', { database: worker.database('d'), mode: 'incremental', execute: async () => ({ changes: [{ type: 'upsert', key: 'k', record: {}, cursor: '${CANARY}' }], hasMore: false, nextState: 1 }) })
    export default worker
  `,
  )
  expect((await project.ask('run')).stdout).toMatch(/tidemark #[0-9a-f]{8}/)
  const [hidden] = (await project.json('status'))['syncs']
  expect(hidden.tidemark).toMatch(/^#[0-9a-f]{8}$/)
  const [revealed] = (await project.json('status', '--reveal'))['syncs']
  expect(revealed.tidemark).toBe(CANARY)
})
