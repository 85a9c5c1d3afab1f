import { parseEnv } from 'node:util'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { addToEnvFile } from '../../src/config/env-file.ts'
import { addDestination } from '../../src/config/manifest/add-destination.ts'
import type { ManifestDestination } from '../../src/config/manifest/manifest-file.ts'

const ENTRY: ManifestDestination = { name: 'warehouse', connector: 'postgres', config: { url: '${WAREHOUSE_URL}' } }
const MANIFEST = `# The shop.
connector:   sql      # odd spacing
config: { url: "\${SHOP_URL}" }

streams:
    - id: shop.customers   # four spaces
`

describe('addDestination', () => {
  test('adds a list at the end, and changes no other byte', () => {
    const text = addDestination(MANIFEST, ENTRY)
    expect(text).toBe(
      `${MANIFEST}destinations:\n  - name: warehouse\n    connector: postgres\n    config:\n      url: \${WAREHOUSE_URL}\n`,
    )
    expect(addDestination(MANIFEST.trimEnd(), ENTRY)).toBe(text)
  })

  test('adds an entry after the last of a list, with its indentation, also if other fields follow', () => {
    const listed = MANIFEST.replace(
      'streams:',
      `destinations:
      - name: lake # the first
        connector: postgres
        config: { url: "\${LAKE_URL}" }

# the streams
streams:`,
    )
    const text = addDestination(listed, ENTRY)
    const added = `      - name: warehouse\n        connector: postgres\n        config:\n          url: \${WAREHOUSE_URL}\n`
    expect(text).toContain(added)
    expect(text.replace(added, '')).toBe(listed)
    expect((parse(text) as { destinations: unknown[] }).destinations).toEqual([
      { name: 'lake', connector: 'postgres', config: { url: '${LAKE_URL}' } },
      ENTRY,
    ])
  })

  test.each([
    ['an empty list', `${MANIFEST}destinations: []\n`],
    ['no value', `${MANIFEST}destinations:\n`],
    ['a list in brackets', `${MANIFEST}destinations: [{ name: a, connector: postgres, config: { url: "\${A}" } }]\n`],
    ['a manifest in braces', '{ connector: sql, config: { url: "${SHOP_URL}" } }'],
  ])('keeps comments and values with %s', (_, given) => {
    const text = addDestination(given, ENTRY)
    const before = parse(given) as { destinations?: unknown[] | null }
    expect(parse(text)).toEqual({ ...before, destinations: [...(before.destinations ?? []), ENTRY] })
    for (const [comment] of given.matchAll(/#.*/g)) expect(text).toContain(comment)
  })
})

describe('addToEnvFile', () => {
  test.each([
    'postgres://etl:p%40ss@host:5432/db?sslmode=require',
    'with # and spaces',
    "it's",
    `both ' and "`,
    '$HOME',
  ])('writes %s so that it is read back', (value) => {
    const text = addToEnvFile('# mine\nA=1', { SECRET: value })
    expect(text.startsWith('# mine\nA=1\n')).toBe(true)
    expect(parseEnv(text)).toEqual({ A: '1', SECRET: value })
  })

  test('keeps an equal value, and refuses to replace another one', () => {
    expect(addToEnvFile('A=1\n', { A: '1' })).toBe('A=1\n')
    expect(() => addToEnvFile('A=1\n', { A: '2' })).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
    expect(() => addToEnvFile('', { A: 'x #\'"`' })).toThrow('cannot be written to .env')
  })
})
