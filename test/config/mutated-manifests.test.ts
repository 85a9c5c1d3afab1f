import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildWorker } from '../../src/config/manifest/manifest.ts'
import { isSyncError } from '../../src/contract/index.ts'
import { RandomStream } from '../../src/testing/simulation/random-stream.ts'

const COUNT = Number(process.env['TIDEMARK_MANIFEST_MUTATIONS'] ?? 200)

const MANIFEST = `name: crm
connector: rest
config:
  base_url: https://api.example.com/v1
  auth: { kind: bearer, token: "\${CRM_TOKEN}" }
streams:
  - id: crm.contacts
    key: [id]
    cursor: updated_at
    schedule: 5m
    options:
      path: /contacts
      query: { fields: all }
      records: data.items
      deleted: archived
      lag_ms: 10000
      page: { kind: token, parameter: after, next: paging.next }
      follow: { kind: window, since: updated_since, page: { kind: token, parameter: after, next: paging.next } }
      errors:
        - { status: [420], action: rate-limited, wait: { header: x-reset, unit: s } }
        - { at: error.code, are: [gone], action: ignore }
      filter:
        - { at: type, are: [person] }
  - id: crm.search
    key: [id]
    mode: full_refresh
    options:
      path: /search
      body: { json: { filter: { kind: person }, cursor: "{after}" } }
      records: hits
      page: { kind: token, parameter: after, next: next_cursor, size: { parameter: limit, value: 100 } }
      lookup: { path: "/contacts/{key}" }
  - id: crm.graph
    key: [id]
    options:
      path: /graphql
      graphql: { query: "query($after: String) { people(after: $after) { nodes { id } } }", variables: { first: 50 } }
      records: data.people
      page: { kind: relay }
      decode: json
`

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tidemark-mutations-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

const load = (text: string): Promise<unknown> =>
  buildWorker(join(folder, 'tidemark.yaml'), 'tidemark.yaml', {}, text).then(
    () => null,
    (error: unknown) => error,
  )

/** A change of one place of the text, as a person makes it: a typo, a lost line, wrong indentation, another value. */
function mutate(text: string, random: RandomStream): string {
  const lines = text.split('\n')
  const at = random.int(0, lines.length - 2)
  const line = lines[at]!
  const replace = (other: string): string => lines.with(at, other).join('\n')
  const names = [...line.matchAll(/[a-z_]+(?=:)/g)]
  const name = names.length === 0 ? undefined : names[random.int(0, names.length - 1)]
  switch (random.int(0, 9)) {
    case 0: // Two letters of a name are swapped, or one is lost.
      return name === undefined
        ? replace(`${line}x: 1`)
        : replace(
            line.slice(0, name.index) + name[0].slice(1) + (name[0][0] ?? '') + line.slice(name.index + name[0].length),
          )
    case 1: // camelCase
      return replace(line.replaceAll(/_([a-z])(?=\w*:)/g, (_, letter: string) => letter.toUpperCase()))
    case 2:
      return lines.toSpliced(at, 1).join('\n')
    case 3:
      return lines.toSpliced(at, 0, line).join('\n')
    case 4:
      return replace(` ${line}`)
    case 5:
      return replace(line.replace(/: [^{[].*$/, ': [1, { a: ~ }]'))
    case 6:
      return replace(line.replace(/[}\]"]/, ''))
    case 7:
      return replace(line.replace(/(\w+): (\w+)/, '$1: $2_'))
    case 8:
      return replace(`${line}\n${line.match(/^ */)![0]}extra_field: { deep: [1, 2] }`)
    default:
      return text.slice(0, random.int(1, text.length - 1))
  }
}

describe('manifests with mistakes', () => {
  test('the manifest itself is valid', async () => {
    expect(await load(MANIFEST)).toBe(null)
  })

  test(`${COUNT} mutations load, or are refused with an error that has a place`, async () => {
    let refused = 0
    for (let seed = 1; seed <= COUNT; seed++) {
      const text = mutate(MANIFEST, new RandomStream(seed, 'manifest'))
      const started = performance.now()
      const error = await load(text)
      expect(performance.now() - started, `seed ${seed} took too long`).toBeLessThan(2_000)
      if (error === null) continue
      refused++
      expect(isSyncError(error), `seed ${seed}: ${String(error)}\n${text}`).toBe(true)
      const { message } = error as Error
      expect(message, `seed ${seed}`).toMatch(/^tidemark\.yaml:\d+:\d+: \S/)
    }
    expect(refused).toBeGreaterThan(COUNT / 2)
  })

  test('a misspelt name at every level is refused at its line and column, with the name that was meant', async () => {
    const names = [...MANIFEST.matchAll(/(?<=[\s{,])([a-z_]{4,})(?=: )/g)]
    // The names inside a query, a body and variables belong to the API.
    const isFree = (index: number): boolean =>
      /(?:query: \{|json: \{|variables: \{)/.test(MANIFEST.slice(MANIFEST.lastIndexOf('\n', index), index))
    let checked = 0
    for (const { 0: name, index } of names) {
      if (isFree(index)) continue
      const misspelt = `${name.slice(0, -1)}${name.endsWith('q') ? 'x' : 'q'}`
      const text = MANIFEST.slice(0, index) + misspelt + MANIFEST.slice(index + name.length)
      const error = (await load(text)) as Error
      const line = MANIFEST.slice(0, index).split('\n').length
      const column = index - MANIFEST.lastIndexOf('\n', index - 1)
      expect(error?.message, misspelt).toContain(`tidemark.yaml:${line}:${column}: `)
      expect(error.message, misspelt).toContain(`unknown field "${misspelt}". Did you mean "${name}"?`)
      checked++
    }
    expect(checked).toBeGreaterThan(40)
  })

  test('a camelCase name of earlier versions is refused with the new name', async () => {
    const error = (await load(MANIFEST.replace('lag_ms', 'lagMs'))) as Error
    expect(error.message).toBe('tidemark.yaml:16:7: streams.0.options: unknown field "lagMs". Did you mean "lag_ms"?')
    const kind = (await load(MANIFEST.replace('kind: token, parameter', 'kind: pageNumber, parameter'))) as Error
    expect(kind.message).toMatch(/^tidemark\.yaml:17:\d+: .*Did you mean "page_number"\?$/)
  })

  test.each([
    ['aliases without end', `a: &a [x]\nb: &b [${'*a, '.repeat(99)}*a]\nc: [${'*b, '.repeat(99)}*b]\n`],
    ['an alias without an anchor', `${MANIFEST}select: *nothing\n`],
    ['two documents', `${MANIFEST}---\n${MANIFEST}`],
    ['deep nesting', `connector: ${'['.repeat(5_000)}`],
    ['a key that is a list', `${MANIFEST}? [a, b]\n: c\n`],
    ['an unknown tag', MANIFEST.replace('name: crm', 'name: !!js/function crm')],
    ['control characters', MANIFEST.replace('name: crm', 'name: "\u0000crm"')],
    ['a merge key', `${MANIFEST}<<: { connector: sql }\n`],
  ])('%s is refused with a place', async (_, text) => {
    const error = await load(text)
    expect(isSyncError(error), String(error)).toBe(true)
    expect((error as Error).message).toMatch(/^tidemark\.yaml:\d+:\d+: \S/)
  })
})
