import type * as Fs from 'node:fs'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'

/** The operations that reached the file system, in order. */
const calls = vi.hoisted(() => [] as string[])

vi.mock('node:fs', async (original) => {
  const fs = await original<typeof Fs>()
  const paths = new Map<number, string>()
  return {
    ...fs,
    openSync: (...args: Parameters<typeof fs.openSync>) => {
      const handle = fs.openSync(...args)
      paths.set(handle, String(args[0]))
      return handle
    },
    fsyncSync: (handle: number) => {
      calls.push(`sync ${paths.get(handle)}`)
      fs.fsyncSync(handle)
    },
    renameSync: (from: string, to: string) => {
      calls.push(`name ${from} ${to}`)
      fs.renameSync(from, to)
    },
    linkSync: (from: string, to: string) => {
      calls.push(`name ${from} ${to}`)
      fs.linkSync(from, to)
    },
  }
})

test('Z3 a key file is synced before it is renamed, and its folder before it is used', async () => {
  const { addKeyToFile, loadKeyRing, removeKeyFromFile } = await import('../../src/config/load-key-ring.ts')
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-key-file-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'app.db.key')
  const ring = () =>
    loadKeyRing({ product: 'SQLite', storage: { kind: 'file', path: join(folder, 'app.db') } }, {}, folder)
  const durable = [
    expect.stringMatching(/^sync .*app\.db\.key\.[0-9a-f]+$/),
    expect.stringMatching(/^name .* .*app\.db\.key$/),
    `sync ${dirname(file)}`,
  ]
  const seen = (act: () => unknown): string[] => {
    calls.length = 0
    act()
    return [...calls]
  }
  expect(seen(ring)).toEqual(durable)
  const first = ring().current.id
  expect(seen(() => addKeyToFile(file))).toEqual(durable)
  expect(seen(() => removeKeyFromFile(file, first))).toEqual(durable)
})
