import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { expect, test } from 'vitest'
import { Project } from './project.ts'

/** A pair whose source is two files: `items.json`, and `log.json` with the events that are still kept. */
const WORKER = `
import { readFileSync } from 'node:fs'
import { Worker, SyncError } from 'tidemark'

const read = (file) => JSON.parse(readFileSync(new URL(file, import.meta.url), 'utf8'))
const worker = new Worker({ name: 'office' })
const things = worker.database('things')
const upsert = (key, value) => ({ type: 'upsert', key, record: { value } })

worker.track('shop', {
  database: things,
  source: {
    anchor: async () => ({ after: read('./log.json').head }),
    backfill: async () => ({ changes: Object.entries(read('./items.json')).map(([key, value]) => upsert(key, value)), hasMore: false }),
    delta: async (state) => {
      const { head, kept } = read('./log.json')
      if (state === undefined) return { changes: [], hasMore: false, nextState: { after: head } }
      if (state.after < head - kept.length) throw new SyncError('CURSOR_REJECTED', 'there is no such event')
      const news = kept.slice(kept.length - (head - state.after), kept.length)
      return { changes: head === state.after ? [] : news.map(({ key, value }) => (value === null ? { type: 'delete', key } : upsert(key, value))), hasMore: false, nextState: { after: head } }
    },
  },
})

export default worker
`

interface Synced {
  readonly sync: string
  readonly health: string
  readonly backfill_needed: { readonly reason: string } | null
}

function open(): Project {
  const project = new Project()
  project.write('worker.mjs', WORKER)
  return project
}

function source(project: Project, items: Record<string, number>, log: { head: number; kept: object[] }): void {
  project.write('items.json', JSON.stringify(items))
  project.write('log.json', JSON.stringify(log))
}

async function health(project: Project): Promise<Record<string, string>> {
  const { syncs } = (await project.json('status', '--file', 'worker.mjs')) as unknown as { syncs: Synced[] }
  return Object.fromEntries(syncs.map(({ sync, health: word }) => [sync, word]))
}

async function rows(project: Project): Promise<string> {
  const { stdout } = await project.ask(
    'query',
    'select _key, value from things order by _key',
    '--json',
    '--file',
    'worker.mjs',
  )
  return stdout.replaceAll(/\s/g, '')
}

test('XC32 across repeated runs, a rejected cursor is followed by a backfill, and HEALTHY means complete', async () => {
  const project = open()
  source(project, { a: 1, b: 2, c: 3 }, { head: 3, kept: [] })
  const run = (...names: string[]) => project.ask('run', ...names, '--file', 'worker.mjs', '--allow-deletes')
  expect(await run()).toMatchObject({ code: 0, stdout: expect.stringMatching(/shop-backfill[\s\S]+shop /) })
  expect(await health(project)).toEqual({ shop: 'HEALTHY', 'shop-backfill': 'HEALTHY' })

  // While no process ran, b was deleted, and its event expired.
  source(project, { a: 1, c: 3, d: 4 }, { head: 9, kept: [{ key: 'd', value: 4 }] })
  expect(await run('shop')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/HISTORY_LOST[\s\S]+✓ shop-backfill[\s\S]+✓ shop /),
  })
  expect(await rows(project)).not.toContain('"b"')
  expect(await health(project)).toEqual({ shop: 'HEALTHY', 'shop-backfill': 'HEALTHY' })
})

test('XC32 after a gap longer than the retention, status and doctor report the backfill before any run', async () => {
  const project = new Project()
  project.write('worker.mjs', WORKER.replace('database: things,', 'database: things, retentionMs: 30 * 86_400_000,'))
  source(project, { a: 1 }, { head: 1, kept: [] })
  await project.ask('run', '--file', 'worker.mjs')
  expect(await health(project)).toEqual({ shop: 'HEALTHY', 'shop-backfill': 'HEALTHY' })
  const store = new DatabaseSync(join(project.folder, '.tidemark/tidemark.db'))
  store.exec(`update tidemark_registry set complete_since = complete_since - ${31 * 86_400_000}`)
  store.close()

  const { syncs } = (await project.json('status', '--file', 'worker.mjs')) as unknown as { syncs: Synced[] }
  for (const { health: word, backfill_needed: needed } of syncs) {
    expect(word).toBe('WARNING')
    expect(needed?.reason).toMatch(/^shop was last complete at .* keeps changes and deletions for 30 days only\.$/)
  }
  const { stdout } = await project.ask('status', '--file', 'worker.mjs')
  expect(stdout).toMatch(/shop-backfill: needs a backfill since/)
  const doctor = await project.ask('doctor', '--file', 'worker.mjs')
  expect(doctor.stdout).toMatch(/sync shop\b.*WARNING: needs a backfill: shop was last complete/)
  expect(await project.ask('run', '--file', 'worker.mjs')).toMatchObject({
    stdout: expect.stringMatching(/HISTORY_LOST|shop-backfill/),
  })
  expect(await health(project)).toEqual({ shop: 'HEALTHY', 'shop-backfill': 'HEALTHY' })
})

test('XC32 state reset of a delta requests a backfill, reports it, and the next run performs it', async () => {
  const project = open()
  source(project, { a: 1, b: 2 }, { head: 2, kept: [] })
  await project.ask('run', '--file', 'worker.mjs')
  source(project, { a: 1, c: 3 }, { head: 5, kept: [] })
  const reset = ['state', 'reset', 'shop', '--reason', 'doubt', '--file', 'worker.mjs'] as const
  expect(await project.ask(...reset)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('shop-backfill, which starts with the next run'),
  })
  expect(await project.json(...reset, '--yes')).toMatchObject({
    needs_backfill: 'shop-backfill',
    next_cycle: expect.stringContaining('reads everything again'),
  })
  expect(await health(project)).toEqual({ shop: 'WARNING', 'shop-backfill': 'WARNING' })
  // The delta alone does not make it whole: what it begins with is the end of the log.
  expect(await project.ask('run', '--file', 'worker.mjs', '--allow-deletes')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('shop-backfill'),
  })
  expect(await rows(project)).toContain('"c"')
  expect(await rows(project)).not.toContain('"b"')
  expect(await health(project)).toEqual({ shop: 'HEALTHY', 'shop-backfill': 'HEALTHY' })
})
