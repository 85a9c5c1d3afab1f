import { spawn, type ChildProcess } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildPackage, type Build } from './build.ts'
import { Child, killChildren } from './child.ts'
import { chance } from './children/world.mjs'
import { readStoreFacts } from './facts.ts'
import { createSqliteFixture, type ProcessStoreFixture } from './process-store-fixture.ts'

let build: Build
let stand: ProcessStoreFixture
const REF = { worker: 'office', sync: 'listing' }
const commands = new Set<ChildProcess>()

beforeAll(async () => {
  build = await buildPackage()
  stand = createSqliteFixture()
})

afterAll(async () => {
  for (const command of commands) command.kill('SIGKILL')
  killChildren()
  await stand.remove()
  build.remove()
})

describe('XA10 a signal in the middle of a page', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)(
    '%s at random times: each run ends in time and releases the lease, and together they end equal',
    async (signal) => {
      const random = chance(signal === 'SIGTERM' ? 1 : 2)
      const url = await stand.fresh()
      const input = { url, name: 'all', rows: 400, pageMs: 15, listen: true }
      let reached = 0
      for (let run = 1; ; run++) {
        expect(run).toBeLessThan(100)
        // The first one stops in a page: if it missed the signal, it would hang there for ever.
        const child = new Child(build, 'run-sync.mjs', { input: { ...input, holdAt: run === 1 ? 3 : 0 } })
        const goal = reached + 1 + Math.floor(random() * 10)
        await (run === 1
          ? child.until('holding')
          : Promise.race([child.until('landed', ({ page }) => Number(page) >= goal), child.until('result')]))
        await new Promise((resolve) => setTimeout(resolve, random() * 20))
        child.signal(signal)
        const { said, stderr } = await child.ended
        // Its exit code does not matter: the system handles a signal to a process that is already exiting.
        expect({ stderr, last: said.at(-1) }).toEqual({ stderr: '', last: { event: 'closed' } })
        const result = said.find(({ event }) => event === 'result')!
        const { heldBy, failures, lastError, inflight } = await stand.look(url, (store) => store.readCheckpoint(REF))
        expect({ heldBy, failures, lastError }).toEqual({ heldBy: null, failures: 0, lastError: null })
        if (result['stopReason'] === 'complete') break
        expect(result).toMatchObject({ stopReason: 'cancelled', error: null, resumed: run > 1 })
        expect(inflight!.page).toBeGreaterThanOrEqual(said.filter(({ event }) => event === 'landed').length)
        reached = inflight!.page
      }
      const twin = await stand.fresh()
      await new Child(build, 'run-sync.mjs', { input: { ...input, url: twin, pageMs: 0 } }).ended
      expect(await stand.look(url, readStoreFacts)).toEqual(await stand.look(twin, readStoreFacts))
    },
  )

  test('the first signal waits for the store, the second does not', async () => {
    const project = join(build.folder, 'project')
    mkdirSync(join(project, 'node_modules'), { recursive: true })
    symlinkSync(build.folder, join(project, 'node_modules/tidemark'))
    writeFileSync(join(project, 'worker.mjs'), ENDLESS)
    const file = join(project, 'store.db')
    const command = spawn(
      process.execPath,
      [join(build.dist, 'cli/main.js'), 'run', '--file', 'worker.mjs', '--store', `sqlite:${file}`],
      { cwd: project },
    )
    commands.add(command)
    let output = ''
    command.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
    command.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
    const ended = new Promise((resolve) => command.once('close', (code, signal) => resolve(code ?? signal)))
    await until(
      () => output.includes('page 3'),
      () => output,
    )

    // Another connection locks the database: the current page can neither land nor release its lease.
    const other = new DatabaseSync(file)
    other.exec('pragma busy_timeout = 5000; begin immediate')
    try {
      await new Promise((resolve) => setTimeout(resolve, 100))
      command.kill('SIGTERM')
      await until(
        () => output.includes('Press Ctrl-C again to exit immediately'),
        () => output,
      )
      expect(await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 600, 'waits'))])).toBe('waits')
      command.kill('SIGTERM')
      // It exits on its own: a process that waits for the store ends with a code.
      expect(await ended).toBe('SIGINT')
      expect(output).not.toContain('terminate called')
    } finally {
      other.exec('rollback')
      other.close()
    }
    await stand.look(`sqlite:${file}`, readStoreFacts)
  })
})

describe('XA14 an unawaited promise rejects', () => {
  test('a program with a handler continues, and the cycle with it', async () => {
    const url = await stand.fresh()
    const { code, said } = await new Child(build, 'stray.mjs', { input: { url, guarded: true } }).ended
    expect(code).toBe(0)
    expect(said.at(-1)).toMatchObject({
      event: 'result',
      stopReason: 'complete',
      pages: 6,
      position: 6,
      strays: ['stray at once', 'stray later', 'stray after the end'],
    })
    await stand.look(url, readStoreFacts)
  })

  test('a program without a handler is ended by Node, as if killed: the next run continues', async () => {
    const url = await stand.fresh()
    const { code, said, stderr } = await new Child(build, 'stray.mjs', { input: { url, guarded: false } }).ended
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('stray at once') as string })
    const landed = said.findLast(({ event }) => event === 'landed')?.['page'] ?? 0
    expect((await stand.look(url, readStoreFacts)).position).toBeGreaterThanOrEqual(landed as number)
    const next = await new Child(build, 'stray.mjs', { input: { url, guarded: true } }).ended
    expect(next.said.at(-1)).toMatchObject({ stopReason: 'complete', position: 6 })
    await stand.look(url, readStoreFacts)
  })
})

/** Lists for ever, so that only the signal can end it. */
const ENDLESS = `
import { Worker } from 'tidemark'
const worker = new Worker({ name: 'office' })
worker.sync('listing', {
  database: worker.database('people'), mode: 'incremental',
  async execute(state) {
    const n = (state?.n ?? 0) + 1
    console.log('page ' + n)
    await new Promise((resolve) => setTimeout(resolve, 20))
    return { changes: [{ type: 'upsert', key: String(n), record: { n } }], hasMore: true, nextState: { n } }
  },
})
export default worker
`

async function until(holds: () => boolean, explain: () => string): Promise<void> {
  const deadline = performance.now() + 30_000
  while (!holds()) {
    expect(performance.now(), explain()).toBeLessThan(deadline)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
