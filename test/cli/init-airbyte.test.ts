import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { writeAirbyteProject } from '../../src/cli/kit/airbyte-project.ts'
import { readManifest } from '../../src/config/manifest/manifest.ts'
import { manifestOf } from '../sources/airbyte/shop.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tidemark-init-airbyte-'))
  const stream = (name: string, type: string): string =>
    `  - { type: DeclarativeStream, name: ${name}, primary_key: id, retriever: { type: ${type}, requester: { $ref: '#/definitions/requester', path: / }, record_selector: { $ref: '#/definitions/records' } } }`
  writeFileSync(
    join(folder, 'connector.yaml'),
    manifestOf(`${stream('items', 'SimpleRetriever')}\n${stream('jobs', 'AsyncRetriever')}`).replace(
      '    properties:\n      api_key',
      '    required: [api_key, region]\n    properties:\n      region: { type: string }\n      api_key',
    ),
  )
})
afterAll(() => rmSync(folder, { recursive: true }))

const write = (name: string, given: Record<string, string>) =>
  writeAirbyteProject(join(folder, name), join(folder, 'connector.yaml'), { given, ask: null, force: false })

test('a project is written for the streams that run, and secrets go to .env', async () => {
  const project = await write('my-shop', { region: 'eu', api_key: 'canary' })
  expect(project).toMatchObject({ streams: ['items'], missing: [], unsupported: [{ name: 'jobs' }] })
  const text = readFileSync(join(folder, 'my-shop/tidemark.yaml'), 'utf8')
  expect(text).not.toContain('canary')
  expect(text).toMatch(/# {3}jobs: .*AsyncRetriever \(line \d+\)/)
  expect(readFileSync(join(folder, 'my-shop/.env'), 'utf8')).toContain('MY_SHOP_API_KEY=canary')
  expect(readFileSync(join(folder, 'my-shop/.gitignore'), 'utf8')).toContain('.env')
  const file = join(folder, 'my-shop/tidemark.yaml')
  expect(readManifest(file, 'tidemark.yaml', {})).toMatchObject({
    connector: 'airbyte',
    config: { manifest: 'manifest.yaml', settings: { api_key: '${MY_SHOP_API_KEY}', region: 'eu', page_size: 2 } },
    streams: [{ id: 'items' }],
  })
  await expect(write('my-shop', { region: 'eu' })).rejects.toThrow(/already exists/)
})

test('a required setting that is missing is named, and nothing is written', async () => {
  await expect(write('other', {})).rejects.toThrow(/requires `region`.*--set region=/)
  expect(() => readFileSync(join(folder, 'other/tidemark.yaml'))).toThrow(/ENOENT/)
})
