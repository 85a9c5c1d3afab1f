import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openStore } from '../../src/stores/open-store.ts'
import { SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { Project } from '../cli/project.ts'

const ROWS = 30_000

test.each([
  ['all of it', []],
  ['what is new', ['--since-last']],
])(
  'an export of %s that is killed leaves no file that could be taken for whole; the next one writes it',
  async (_, flags) => {
    const project = new Project()
    const store = await openStore(`sqlite:${join(project.folder, '.tidemark/tidemark.db')}`, { environment: {} })
    const driver = await SyncDriver.acquire(store)
    await driver.cycle(
      Array.from({ length: ROWS }, (_, n) => upsert(`k${String(n).padStart(6, '0')}`, { n, text: 'x'.repeat(200) })),
    )
    await driver.release()
    await store.close()
    const out = (): string[] => readdirSync(project.folder).filter((name) => name.startsWith('out'))

    const victim = project.start('export', 'things', '--to', 'out.ndjson', ...flags)
    while (out().length === 0 && victim.process.exitCode === null)
      await new Promise((resolve) => setTimeout(resolve, 1))
    victim.process.kill('SIGKILL')
    expect((await victim.ended).code).toBeNull()
    expect(out().filter((name) => !name.endsWith('.part'))).toEqual([])

    expect(await project.json('export', 'things', '--to', 'out.ndjson', ...flags)).toMatchObject({ rows: ROWS })
    const [file, ...rest] = out().filter((name) => !name.endsWith('.position'))
    expect(rest).toEqual([])
    const keys = readFileSync(join(project.folder, file!), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { _key: string })._key)
    expect([keys.length, new Set(keys).size]).toEqual([ROWS, ROWS])
  },
)
