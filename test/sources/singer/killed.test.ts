import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildPackage, type Build } from '../../process/build.ts'
import { Child, killChildren } from '../../process/child.ts'
import { createSqliteFixture, type ProcessStoreFixture } from '../../process/process-store-fixture.ts'
import { isAlive, people, TAP, until, type TapInvocation } from './tap-fixture.ts'

let build: Build
let stand: ProcessStoreFixture
let folder: string

beforeAll(async () => {
  build = await buildPackage()
  stand = createSqliteFixture()
  folder = mkdtempSync(join(tmpdir(), 'tidemark-tap-'))
})

afterAll(async () => {
  killChildren()
  await stand.remove()
  build.remove()
  rmSync(folder, { recursive: true, force: true })
})

const ROWS = people(60)

/** `every` is how often the tap writes its state: with every third record, or only at its end. */
test.each([
  ['often', 3],
  ['never', undefined],
])(
  'R50 R6 kill −9 in the middle of a cycle: nothing is lost or committed twice when the tap writes its state %s, and no tap keeps running',
  async (name, every) => {
    const world = join(folder, `${name}.json`)
    const serve = (how: object): void =>
      writeFileSync(
        world,
        JSON.stringify({ streams: { people: { rows: ROWS } }, ...(every !== undefined && { every }), ...how }),
      )
    const seen = (): TapInvocation[] =>
      readFileSync(`${world}.seen`, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as TapInvocation)
    const url = await stand.fresh()
    const input = { url, command: [process.execPath, TAP], world, pageSize: every === undefined ? 1 : 6 }

    serve({ hangAt: 50 })
    const victim = new Child(build, 'run-tap.mjs', { input: { ...input, holdAt: 4 } })
    await victim.until('landed', ({ page }) => page === 2)
    const tap = seen().at(-1)!
    expect(isAlive(tap.pid)).toBe(true)
    await victim.kill()
    // No signal asks it to end, and nothing it writes would fail: its guard ends it.
    await until(() => !isAlive(tap.pid) && !existsSync(tap.folder))

    const landed = await stand.look(url, (store) => store.changes({ after: 0, limit: 1_000 }))
    expect(landed.length).toBeGreaterThan(0)
    expect(landed.length).toBeLessThan(ROWS.length)
    serve({})
    const heir = await new Child(build, 'run-tap.mjs', { input }).ended
    expect(heir.said.at(-1)).toMatchObject({
      event: 'result',
      stopReason: 'complete',
      resumed: true,
      error: null,
      counts: { created: ROWS.length - landed.length },
    })
    await stand.look(url, async (store) => {
      expect(
        (await store.rows({ database: 'people', limit: 1_000 })).map(({ text }) => JSON.parse(text) as unknown),
      ).toEqual(ROWS.toSorted((a, b) => (String(a['id']) < String(b['id']) ? -1 : 1)))
      expect((await store.changes({ after: 0, limit: 1_000 })).map(({ action }) => action)).toEqual(
        ROWS.map(() => 'created'),
      )
    })
  },
)
