import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { github } from '../../src/sources/github/source.ts'
import { hubspot } from '../../src/sources/hubspot/source.ts'
import { kraken } from '../../src/sources/kraken/source.ts'
import { linear } from '../../src/sources/linear/source.ts'
import { salesforce } from '../../src/sources/salesforce/source.ts'
import { servicenow } from '../../src/sources/servicenow/source.ts'
import { stripe } from '../../src/sources/stripe/source.ts'
import { ROOT } from '../cli/package.ts'
import { membersOf } from './render-sources.ts'
import { SOURCES, type SourceFacts } from './source-facts.ts'

const DAY = 86_400_000
const FOLDER = join(ROOT, 'src/sources')

test.each(SOURCES)('$title: the page has every options type that the source exports', ({ folder, groups }) => {
  const text = readFileSync(join(FOLDER, folder, 'source.ts'), 'utf8')
  const exported = [...text.matchAll(/^export interface (\w+Options)\b/gm)].map(([, name]) => name!)
  const own = groups.filter(({ file }) => file === `${folder}/source.ts`).map(({ name }) => name)
  expect(own.filter((name) => name.endsWith('Options')).toSorted()).toEqual(exported.toSorted())
})

describe.each(SOURCES.flatMap(({ title, groups }) => groups.map((group) => ({ source: title, ...group }))))(
  '$source: $name',
  (group) => {
    const members = membersOf(group)

    test('the page explains every option, and no other', () => {
      expect(members.length).toBeGreaterThan(0)
      expect(Object.keys(group.members).toSorted()).toEqual(members.map(({ name }) => name).toSorted())
    })

    test('every option has a meaning; one with a default is optional', () => {
      for (const { name, isRequired } of members) {
        const [fallback, meaning] = group.members[name]!
        expect(meaning, name).toMatch(/^[A-Z`].+\.$/s)
        if (isRequired) expect(fallback, name).toBeNull()
      }
    })
  },
)

const factsOf = (folder: string): SourceFacts => SOURCES.find((source) => source.folder === folder)!

test.each<[string, object]>([
  ['stripe', stripe({ apiKey: 'KEY' })],
  ['kraken', kraken({ apiKey: 'KEY', apiSecret: 'SECRET' })],
  ['linear', linear({ apiKey: 'KEY' })],
  ['github', github({ token: 'TOKEN' })],
  ['hubspot', hubspot({ accessToken: 'TOKEN' })],
])('%s: the page has every stream, and no other', (folder, source) => {
  // A line that begins with … continues the one above.
  const named = factsOf(folder).streams.flatMap(([name]) => /\)\.(\w+)/.exec(name)?.[1] ?? [])
  expect(named.toSorted()).toEqual(
    Object.keys(source)
      .filter((name) => name !== 'discover')
      .toSorted(),
  )
})

test('github: the page has every stream of a repository, and no other', () => {
  const lines = factsOf('github').streams.map(([name]) => name)
  const ofRepository = lines.filter((name) => name.startsWith('…') || name.includes('.repository('))
  const named = ofRepository.map((name) => name.slice(name.lastIndexOf('.') + 1))
  expect(named.toSorted()).toEqual(Object.keys(github({ token: 'TOKEN' }).repository('owner/name')).toSorted())
})

test.each([
  ['stripe', stripe({ apiKey: 'KEY' }).customers.delta.retentionMs],
  ['hubspot', hubspot({ accessToken: 'TOKEN' }).contacts.delta.retentionMs],
  [
    'salesforce',
    salesforce({ instanceUrl: 'https://example.my.salesforce.com', accessToken: 'TOKEN' }).object('Account').delta
      .retentionMs,
  ],
  [
    'servicenow',
    servicenow({ instanceUrl: 'https://example.service-now.com', user: 'USER', password: 'PASSWORD' }).table('incident')
      .delta.retentionMs,
  ],
])('%s: the retention on the page is that of its delta', (folder, retentionMs) => {
  expect(Number(/(\d+) days/.exec(factsOf(folder).retention)![1])).toBe(Math.ceil(retentionMs! / DAY))
})

test.each([
  ['hubspot', hubspot({ accessToken: 'TOKEN' }).contacts.lagMs],
  [
    'salesforce',
    salesforce({ instanceUrl: 'https://example.my.salesforce.com', accessToken: 'TOKEN' }).object('Account').lagMs,
  ],
  [
    'servicenow',
    servicenow({ instanceUrl: 'https://example.service-now.com', user: 'USER', password: 'PASSWORD' }).table('incident')
      .lagMs,
  ],
])('%s: the lag on the page is that of its streams', (folder, lagMs) => {
  const { lag, groups } = factsOf(folder)
  expect(Number(/(\d+) seconds/.exec(lag)![1]) * 1_000).toBe(lagMs)
  expect(groups[0]!.members['lagMs']![0]).toBe(String(lagMs))
})
