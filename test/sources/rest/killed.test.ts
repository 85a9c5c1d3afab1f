import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStore } from '../../../src/stores/open-store.ts'
import { buildPackage, type Build } from '../../process/build.ts'
import { Child } from '../../process/child.ts'
import { json, serve } from '../kit/loopback.ts'

let build: Build
beforeAll(async () => {
  build = await buildPackage()
})
afterAll(() => build.remove())

test('a reader of children that is killed inside a cycle reads no child twice and misses none', async () => {
  const tasks = Array.from({ length: 30 }, (_, n) => ({
    id: `t${String(n).padStart(2, '0')}`,
    project: `p${Math.floor(n / 5)}`,
    at: new Date(Date.now() - 60_000).toISOString(),
    n: 0,
  }))
  const asked: string[] = []
  const service = await serve((request, response) => {
    const { pathname, searchParams } = new URL(request.url, 'http://localhost')
    asked.push(request.url)
    const project = /^\/projects\/(\w+)\/tasks$/.exec(pathname)?.[1]
    const since = searchParams.get('since') ?? ''
    const rows =
      project === undefined
        ? Array.from({ length: 6 }, (_, n) => ({ id: `p${n}` }))
        : tasks.filter((task) => task.project === project && task.at >= since)
    const start = Number(searchParams.get('after') ?? 0)
    return json(response, {
      items: rows.slice(start, start + 2),
      next: start + 2 < rows.length ? String(start + 2) : null,
    })
  })
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-rest-kill-'))
  const url = `sqlite:${join(folder, 'store.db')}`
  const look = async () => {
    const store = await openStore(url)
    try {
      const { committed, inflight } = await store.readCheckpoint({ worker: 'office', sync: 'tasks' })
      return { committed, pages: inflight?.page ?? null, feed: await store.changes({ after: 0, limit: 1_000 }) }
    } finally {
      await store.close()
    }
  }
  try {
    const victim = new Child(build, 'run-rest.mjs', { input: { url, service, holdAt: 12 } })
    await victim.until('landed', (said) => said['page'] === 9)
    expect((await victim.kill()).signal).toBe('SIGKILL')
    const killed = await look()
    expect(killed).toMatchObject({ committed: null })
    expect(killed.feed.length).toBeGreaterThan(5)
    expect(killed.feed.length).toBeLessThan(30)
    asked.length = 0

    const heir = await new Child(build, 'run-rest.mjs', { input: { url, service } }).ended
    expect(heir.said.at(-1)).toMatchObject({ event: 'result', stopReason: 'complete', resumed: true })
    expect((await look()).feed.map(({ key }) => key).toSorted()).toEqual(tasks.map(({ id }) => id))
    // Children of the first parent were committed before, so they are not requested again.
    expect(asked.filter((path) => path.startsWith('/projects/p0/'))).toEqual([])

    // The next cycle reads each parent from its own cursor.
    asked.length = 0
    tasks[7] = { ...tasks[7]!, n: 1, at: new Date(Date.now() - 1_000).toISOString() }
    const third = await new Child(build, 'run-rest.mjs', { input: { url, service } }).ended
    expect(third.said.at(-1)).toMatchObject({ stopReason: 'complete', counts: { created: 0, updated: 1 } })
    expect(asked.filter((path) => path.includes('/tasks') && !path.includes('since='))).toEqual([])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
