import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { DESTINATIONS } from '../../src/destinations/registry.ts'
import { ROOT } from '../cli/package.ts'
import { renderConfig } from '../docs/render-config.ts'
import { guideOf, renderDestinations, renderGuide, renderOverview } from '../docs/render-destinations.ts'
import { renderDestinationSchemas } from '../docs/render-destination-schemas.ts'
import { renderLlms } from '../docs/render-llms.ts'
import { renderProviders } from '../docs/render-providers.ts'
import { renderSources } from '../docs/render-sources.ts'
import { renderTelemetry } from '../docs/render-telemetry.ts'

test.each([
  ['docs/reference/config.md', renderConfig],
  ['docs/guides/destinations.md', renderOverview],
  ['docs/reference/destinations.md', renderDestinations],
  ['docs/reference/destinations.schema.json', renderDestinationSchemas],
  ['docs/reference/providers.md', renderProviders],
  ['docs/reference/sources.md', renderSources],
  ['docs/reference/telemetry.md', renderTelemetry],
  ['llms.txt', renderLlms],
])('%s equals the output of its generator (TIDEMARK_UPDATE=1 writes it)', (page, render) => {
  if (process.env['TIDEMARK_UPDATE'] === '1') writeFileSync(join(ROOT, page), render())
  expect(readFileSync(join(ROOT, page), 'utf8')).toBe(render())
})

test.each(Object.keys(DESTINATIONS))(
  'the tables of docs/guides/destinations/%s.md come from its descriptor (TIDEMARK_UPDATE=1 writes them)',
  (name) => {
    if (process.env['TIDEMARK_UPDATE'] === '1') writeFileSync(guideOf(name), renderGuide(name))
    const text = readFileSync(guideOf(name), 'utf8')
    expect(text).toBe(renderGuide(name))
    expect(text).toContain('| `timestamp` |')
  },
)

test('every option of a destination is described', () => {
  const rows = renderDestinations()
    .split('\n')
    .filter((line) => /^\| `\w+`/.test(line))
  expect(rows.length).toBeGreaterThan(0)
  expect(rows.filter((line) => line.endsWith(' |  |'))).toEqual([])
})

test('every field of the worker configuration is described, and the table can show one', () => {
  const page = renderConfig()
  expect(page).toMatch(/\| `backfillSchedule` \| `ScheduleInput` \| The schedule of the backfill/)
  expect(page).toMatch(/\| `retriesMax` \| `number` \| .*Default: `5`/)
  for (const option of [
    'database',
    'mode',
    'schedule',
    'pacer',
    'execute',
    'lookup',
    'owner',
    'scope',
    'limits',
    'sweep',
    'priority',
  ])
    expect(page).toContain(`| \`${option}\` |`)
})

test('every link of the pages leads somewhere', () => {
  const dead: string[] = []
  for (const page of [
    'README.md',
    'ARCHITECTURE.md',
    'CONTRIBUTING.md',
    'AGENTS.md',
    'llms.txt',
    ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.md'))
      .map((file) => `docs/${file}`),
  ]) {
    const text = readFileSync(join(ROOT, page), 'utf8')
      .replaceAll(/^```[\s\S]*?^```/gm, '')
      .replaceAll(/`[^`\n]*`/g, '')
    for (const [, link] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(link!)) continue
      const path = join(ROOT, dirname(page), link!.replace(/#.*$/, ''))
      if (!existsSync(path) || (link!.endsWith('/') && !statSync(path).isDirectory())) dead.push(`${page}: ${link}`)
    }
  }
  expect(dead).toEqual([])
})
