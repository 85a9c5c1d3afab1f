import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'

const folder = resolve(import.meta.dirname, '../../src/strategies')
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => [name, readFileSync(join(folder, name), 'utf8')] as const)

test('no strategy compares by a locale', () => {
  for (const [name, code] of files) expect(code, name).not.toMatch(/\blocaleCompare\b|\bIntl\b/)
})

test('nothing lives at the top of a strategy that a cycle could change: it would outlive a crash', () => {
  for (const [name, code] of files)
    expect(code, name).not.toMatch(/^(?:export )?(?:let|var)\b|^(?:export )?const \w+ = new (?:Map|Set)\b/m)
})

test('index.ts lists every strategy by its name', () => {
  const index = readFileSync(join(folder, 'index.ts'), 'utf8')
  for (const [name] of files)
    if (!name.includes('/') && name !== 'index.ts') expect(index, name).toContain(`from './${name}'`)
  expect(index).not.toMatch(/export \*/)
})
