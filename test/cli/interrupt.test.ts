import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { buildPackage } from './package.ts'
import { people, Project } from './project.ts'

const ROWS = 'select id, name from people order by id'

describe('XA10 a run can be stopped at any time', () => {
  test.each(['SIGINT', 'SIGTERM'] as const)(
    '%s in the middle: exit 130, the lease is given back, and the next run ends where an undisturbed one does',
    async (signal) => {
      const project = Project.withWorker({ people: people(40), slowMs: 200 })
      const running = project.start('run', 'people-list', '--json')
      await running.says('"page":3')
      running.process.kill(signal)
      const { code, stdout } = await running.ended
      expect(code).toBe(130)
      const result = JSON.parse(stdout.trim().split('\n').at(-1)!) as Record<string, any>
      expect(result).toMatchObject({
        event: 'result',
        ok: false,
        interrupted: true,
        syncs: [{ stop_reason: 'cancelled', error: null }],
      })

      const [standing] = (await project.json('status'))['syncs']
      expect(standing).toMatchObject({
        held_by: null,
        failures: 0,
        unfinished: { cycle: 1, pages: result['syncs'][0].pages },
      })

      project.source({ people: people(40) })
      expect(await project.json('run', 'people-list')).toMatchObject({
        ok: true,
        syncs: [{ cycle: 1, resumed: true, stop_reason: 'complete' }],
      })
      const undisturbed = Project.withWorker({ people: people(40) })
      await undisturbed.run('run', 'people-list')
      const rows = (await project.json('query', ROWS))['rows']
      expect(rows).toHaveLength(40)
      expect(rows).toEqual((await undisturbed.json('query', ROWS))['rows'])
    },
  )

  test('a connector that ignores the signal is abandoned', async () => {
    const project = Project.withWorker()
    project.write('worker.ts', DEAF)
    const running = project.start('run', 'deaf')
    await running.says('cycle 1 starts')
    running.process.kill('SIGINT')
    const { code, stdout } = await running.ended
    expect([code, stdout]).toEqual([130, expect.stringContaining('stopped; the next run continues here')])
  })

  test('the second signal exits immediately; two simultaneous signals count as one', async () => {
    const script = `
      import { listenForStop } from ${JSON.stringify(join(buildPackage(), 'dist/cli/kit/stop-signals.js'))}
      setInterval(() => {}, 1000)
      listenForStop({ remark: (...lines) => console.log(...lines) }, 130).addEventListener('abort', () => setTimeout(() => console.log('still here'), 300))
      console.log('listening')
    `
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'pipe' })
    onTestFinished(() => void child.kill('SIGKILL'))
    let said = ''
    const until = (words: string): Promise<void> =>
      new Promise((resolve) => {
        child.stdout.on('data', () => said.includes(words) && resolve())
        if (said.includes(words)) resolve()
      })
    child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text))
    await until('listening')
    child.kill('SIGINT')
    child.kill('SIGTERM')
    await until('still here')
    child.kill('SIGINT')
    // A shell reports it as 130.
    expect(await new Promise((resolve) => child.once('exit', (code, signal) => resolve(code ?? signal)))).toBe('SIGINT')
  })

  test('a killed run is taken over immediately on the same host', async () => {
    const project = Project.withWorker({ people: people(40), slowMs: 200 })
    const running = project.start('run', 'people-list', '--json')
    await running.says('"page":2')
    running.process.kill('SIGKILL')
    await running.ended
    expect((await project.run('status')).stdout).toContain('is abandoned; the next run takes over')
    project.source({ people: people(40) })
    expect(await project.json('run', 'people-list')).toMatchObject({
      ok: true,
      syncs: [{ resumed: true, stop_reason: 'complete' }],
    })
    expect((await project.json('query', 'select count(*) as n from people'))['rows']).toEqual([{ n: 40 }])
  })

  test('a second run reports the holder of the lease', async () => {
    const project = Project.withWorker({ people: people(40), slowMs: 2_000 })
    const running = project.start('run', 'people-list', '--json')
    await running.says('"event":"begun"')
    const second = await project.run('run', 'people-list')
    expect(second).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/LEASE_HELD {2}people-list is being run by .+:\d+:/),
    })
    const moved = await project.run('state', 'reset', 'people-list', '--reason', 'a test', '--yes')
    expect(moved).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/LEASE_HELD.+is run by .+The state was not changed/),
    })
    running.process.kill('SIGINT')
    await running.ended
  })
})

/** A connector that hears no signal: it is left behind. */
const DEAF = `
import { Worker } from 'tidemark'
const worker = new Worker({ name: 'office' })
worker.sync('deaf', { database: worker.database('people'), execute: () => new Promise((resolve) => setTimeout(() => resolve({ changes: [], hasMore: false }), 60_000)) })
export default worker
`
