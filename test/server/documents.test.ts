import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createJiti } from 'jiti'
import { expect, onTestFinished, test } from 'vitest'
import { ROUTES } from '../../src/server/server.ts'
import { remove, SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { openHarness } from '../stores/sqlite-harness.ts'
import { renderHttp } from './render-http.ts'
import { ServerFixture } from './server-fixture.ts'

interface Change {
  readonly resourceId: string
  readonly action: string
  readonly snapshot: unknown
}
type CatchUp = (
  url: string,
  key: string,
  cursor: string | null,
  save: (changes: readonly Change[], cursor: string) => Promise<void>,
) => Promise<string>

const docs = join(import.meta.dirname, '../../docs')

test('A31 docs/reference/http.md and the schemas are the same (TIDEMARK_UPDATE=1 writes the page)', () => {
  const page = join(docs, 'reference/http.md')
  const expected = renderHttp(ROUTES)
  if (process.env['TIDEMARK_UPDATE'] === '1') writeFileSync(page, expected)
  expect(readFileSync(page, 'utf8')).toBe(expected)
})

test('A31 the consumer of the guide keeps a copy, through a crash and through deletions', async () => {
  const [, code] = /^```ts\n([\s\S]*?)^```/m.exec(readFileSync(join(docs, 'guides/serve-the-feed.md'), 'utf8'))!
  const folder = mkdtempSync(join(import.meta.dirname, '../../node_modules/.cache-guide-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, 'consumer.ts'), code!)
  const { catchUp } = await createJiti(import.meta.url).import<{ catchUp: CatchUp }>(join(folder, 'consumer.ts'))
  const stand = await ServerFixture.open(openHarness)
  const driver = await stand.driver()
  await driver.cycle(Array.from({ length: 450 }, (_, n) => upsert(`k${String(n).padStart(3, '0')}`, { n })))
  const copy = new Map<string, unknown>()
  let stands: string | null = null
  let crashes = 1
  const save = async (changes: readonly Change[], cursor: string): Promise<void> => {
    if (stands !== null && crashes-- > 0) throw new Error('the consumer died')
    for (const { resourceId, action, snapshot } of changes) {
      if (action === 'deleted') copy.delete(resourceId)
      else copy.set(resourceId, snapshot)
    }
    stands = cursor
  }
  await expect(catchUp(stand.url, stand.key, stands, save)).rejects.toThrow('the consumer died')
  await catchUp(stand.url, stand.key, stands, save)
  await (await SyncDriver.acquire(stand.store, { sync: 'later' })).cycle([remove('k007'), upsert('k008', { n: 88 })])
  await catchUp(stand.url, stand.key, stands, save)
  const rows = await stand.store.rows({ database: 'things', limit: 1_000 })
  expect([...copy].toSorted(([a], [b]) => (a < b ? -1 : 1))).toEqual(
    rows.map(({ key, text }) => [key, JSON.parse(text)]),
  )
})
