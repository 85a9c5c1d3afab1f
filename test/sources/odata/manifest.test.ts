import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { buildWorker } from '../../../src/config/manifest/manifest.ts'
import { openStore, runCycle } from '../../../src/index.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { RandomStream } from '../../../src/testing/simulation/random-stream.ts'
import { openOdata } from '../../simulators/odata/open-odata.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tidemark-odata-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const write = (text: string): string => {
  const path = join(folder, 'tidemark.yaml')
  writeFileSync(path, text)
  return path
}
const refusal = (text: string) =>
  buildWorker(write(text), 'tidemark.yaml', {}).then(
    () => 'accepted',
    (error: { message: string }) => error.message,
  )

const MANIFEST = `connector: odata
config: { url: "https://erp.example", auth: { kind: bearer, token: "\${TOKEN}" } }
streams:
  - id: sap.s4hana.gl_accounts
    key: [AccountID]
    cursor: LastUpdated
    schema_strategy: discovery
    state_handling: platform_registry
    safety_window: PT5M
    options: { entity_set: GLAccounts, page_size: 2 }
`
const TRACKED = MANIFEST.replace(/ {4}(?:cursor|safety_window).*\n/g, '').replace('page_size: 2', 'delta_links: true')

async function run(text: string): Promise<{ stopReason: string; error: unknown; keys: string[] }> {
  const store = await openStore(`sqlite:${join(folder, 'store.db')}`)
  try {
    const { stopReason, error } = await runCycle(
      await buildWorker(write(text), 'tidemark.yaml', {}),
      'sap.s4hana.gl_accounts',
      { store, secrets: { TOKEN: 'open sesame' } },
    )
    return {
      stopReason,
      error,
      keys: (await store.rows({ database: 'sap.s4hana.gl_accounts', limit: 10 })).map(({ key }) => key),
    }
  } finally {
    await store.close()
  }
}

test('R22 the documented stream runs: by its cursor, by delta links, and read whole', async () => {
  const sets = {
    GLAccounts: {
      key: ['AccountID'],
      properties: { AccountID: 'Edm.String', Name: 'Edm.String', LastUpdated: 'Edm.DateTimeOffset' },
    },
  } as const
  await using served = await openOdata(
    { version: 4, sets, token: 'open sesame' },
    { clock: systemClock, random: new RandomStream(1, 'odata') },
  )
  for (const id of ['a', 'b', 'c'])
    served.odata.put('GLAccounts', { AccountID: id, Name: id, LastUpdated: '2026-01-01T00:00:00Z' })
  const at = (text: string): string => text.replace('https://erp.example', served.url)
  expect(await run(at(MANIFEST))).toEqual({ stopReason: 'complete', error: null, keys: ['a', 'b', 'c'] })
  expect(served.odata.urls.at(-1)).toContain('$filter=(LastUpdated%20gt%20')

  rmSync(join(folder, 'store.db'))
  expect(await run(at(TRACKED))).toMatchObject({ stopReason: 'complete', error: null, keys: ['a', 'b', 'c'] })
  served.odata.remove('GLAccounts', { AccountID: 'b' })
  expect(await run(at(TRACKED))).toMatchObject({ keys: ['a', 'c'] })

  rmSync(join(folder, 'store.db'))
  expect(await run(at(MANIFEST).replace(/ {4}safety_window.*\n/, '    mode: full_refresh\n'))).toMatchObject({
    keys: ['a', 'c'],
  })
})

test('delta links go with no cursor, nothing is incremental without either, and a secret is a name', async () => {
  expect(await refusal(MANIFEST.replace('page_size: 2', 'delta_links: true'))).toMatch(
    /^tidemark\.yaml:4:5: sap\.s4hana\.gl_accounts: delta links/,
  )
  expect(
    await refusal(
      TRACKED.replace('delta_links: true', 'page_size: 2').replace('    options', '    mode: incremental\n    options'),
    ),
  ).toContain('it cannot be incremental without a `cursor`; set one')
  expect(await refusal(MANIFEST.replace('${TOKEN}', 'hunter2'))).toContain('a secret')
})

test('the manifest of the guide loads', async () => {
  const guide = readFileSync(resolve(import.meta.dirname, '../../../docs/guides/odata.md'), 'utf8')
  const [, text] = /^```yaml\n([\s\S]*?)^```/m.exec(guide)!
  const { manifest } = await buildWorker(write(text!), 'tidemark.yaml', {})
  expect(manifest.syncs.map(({ name }) => name)).toEqual([
    'sap.s4hana.gl_accounts-backfill',
    'sap.s4hana.gl_accounts',
    'sap.s4hana.people-backfill',
    'sap.s4hana.people',
  ])
})
