import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openStore } from '../../../src/stores/open-store.ts'
import { buildPackage, type Build } from '../../process/build.ts'
import { Child } from '../../process/child.ts'
import { FilesFixture } from './files-fixture.ts'

test('R41 of 10,000 files, 100 are replaced and 50 arrive late: nothing is missed, and nothing lands twice', async () => {
  const box = await FilesFixture.open()
  try {
    const nameOf = (index: number): string => `${String(index % 10)}/orders_${String(index).padStart(5, '0')}.ndjson`
    for (let part = 0; part < 10; part++) mkdirSync(join(box.folder, String(part)))
    const write = (index: number, ...values: number[]): void =>
      writeFileSync(join(box.folder, nameOf(index)), values.map((value) => `{"n":${value}}\n`).join(''))
    const late = new Set(Array.from({ length: 50 }, (_, index) => index * 199 + 3))
    for (let index = 0; index < 10_050; index++) if (!late.has(index)) write(index, index, -index)
    expect(await box.counts()).toEqual({ created: 20_000 })
    expect(await box.counts()).toEqual({})
    const replaced = Array.from({ length: 110 }, (_, index) => index * 91)
      .filter((index) => !late.has(index))
      .slice(0, 100)
    for (const index of replaced) write(index, index + 1_000_000)
    for (const index of late) write(index, index)
    expect(await box.counts()).toEqual({ created: 50, updated: 100, deleted: 100 })
    expect(await box.counts()).toEqual({})

    const expected = new Map<string, number>()
    for (let index = 0; index < 10_050; index++) {
      expected.set(`${nameOf(index)}#1`, index + (replaced.includes(index) ? 1_000_000 : 0))
      if (!late.has(index) && !replaced.includes(index)) expected.set(`${nameOf(index)}#2`, -index)
    }
    expect(new Map(Object.entries(await box.rows()).map(([key, { n }]) => [key, n]))).toEqual(expected)
    // The feed has every fact once: what was landed twice would be here twice.
    expect(await box.stage.store.changes({ after: 20_000, limit: 1_000 })).toHaveLength(250)
  } finally {
    await box.close()
  }
})

describe('R50 killed', () => {
  let build: Build
  beforeAll(async () => {
    build = await buildPackage()
  })
  afterAll(() => build.remove())

  test('R41 R48 R50 a reader killed in the middle of a file leaves the checkpoint; the next one ends the cycle, and nothing lands twice', async () => {
    const root = mkdtempSync(join(tmpdir(), 'tidemark-files-kill-'))
    const folder = join(root, 'drop')
    const url = `sqlite:${join(root, 'store.db')}`
    const input = { url, folder, pageSize: 3 }
    const look = async () => {
      const store = await openStore(url)
      try {
        const { committed, inflight } = await store.readCheckpoint({ worker: 'office', sync: 'items' })
        return { committed, inflight, feed: await store.changes({ after: 0, limit: 1_000 }) }
      } finally {
        await store.close()
      }
    }
    try {
      mkdirSync(folder)
      const csv = (count: number, word: string): string =>
        `id,word\n${Array.from({ length: count }, (_, index) => `${index + 1},${word}\n`).join('')}`
      for (const name of ['a', 'b', 'c']) writeFileSync(join(folder, `${name}.csv`), csv(13, name))
      const victim = new Child(build, 'run-files.mjs', { input: { ...input, holdAt: 7 } })
      await victim.until('landed', (said) => said['page'] === 6)
      expect((await victim.kill()).signal).toBe('SIGKILL')
      const dead = await look()
      expect(dead).toMatchObject({ committed: null, inflight: { page: 6 } })
      expect(JSON.parse(dead.inflight!.state!)).toMatchObject({ reading: { path: 'b.csv', row: 5 } })

      const heir = await new Child(build, 'run-files.mjs', { input }).ended
      expect(heir.said.at(-1)).toMatchObject({ event: 'result', stopReason: 'complete', resumed: true })
      const done = await look()
      expect(done.feed.map(({ key }) => key).toSorted()).toEqual(
        ['a', 'b', 'c']
          .flatMap((name) => Array.from({ length: 13 }, (_, index) => `${name}.csv#${index + 1}`))
          .toSorted(),
      )
      expect(JSON.parse(done.committed!).cursorValue).toMatch(/^c\.csv#sha256=[0-9a-f]{64}$/)

      // One more full incremental cycle, by yet another process.
      writeFileSync(join(folder, 'b.csv'), csv(11, 'b'))
      writeFileSync(join(folder, 'aa.csv'), csv(2, 'aa'))
      const third = await new Child(build, 'run-files.mjs', { input }).ended
      expect(third.said.at(-1)).toMatchObject({
        stopReason: 'complete',
        resumed: false,
        counts: { created: 2, updated: 0, deleted: 2, unchanged: 11 },
      })
    } finally {
      rmSync(root, { recursive: true, force: true })
    }
  })
})
