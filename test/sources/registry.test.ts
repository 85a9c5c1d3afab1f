import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { readManifest } from '../../src/config/manifest/manifest.ts'
import type { SourceDescriptor } from '../../src/sources/kit/define-source.ts'
import { SOURCES } from '../../src/sources/registry.ts'
import { ROOT } from '../cli/package.ts'

const FOLDER = join(ROOT, 'src/sources')
const DESCRIPTORS = Object.values<SourceDescriptor>(SOURCES)

describe('the registry', () => {
  test('is generated from the folders; `npm run sources` regenerates it', () => {
    execFileSync(process.execPath, ['scripts/write-registries.mjs', '--check'], { cwd: ROOT, stdio: 'pipe' })
    const folders = readdirSync(FOLDER, { withFileTypes: true }).filter((entry) => entry.isDirectory())
    expect(Object.keys(SOURCES)).toEqual(
      folders
        .map(({ name }) => name)
        .filter((name) => name !== 'kit')
        .toSorted(),
    )
  })

  test('every source is registered under its own name', () => {
    expect(DESCRIPTORS.map(({ name }) => name)).toEqual(Object.keys(SOURCES))
  })

  test('no two choices of a prompt have the same rank', () => {
    const ranks = DESCRIPTORS.map(({ template }) => template.rank)
    expect(new Set(ranks).size).toBe(ranks.length)
    const adviceRanks = DESCRIPTORS.flatMap(({ advice }) => advice?.rank ?? [])
    expect(new Set(adviceRanks).size).toBe(adviceRanks.length)
  })
})

describe.each(DESCRIPTORS)('$name', ({ name, config }) => {
  test('its descriptor imports the source and other packages only when it is opened', () => {
    const importsOf = (file: string): string[] =>
      [...readFileSync(join(FOLDER, name, file), 'utf8').matchAll(/^import (?!type\b)[^'"]*['"]([^'"]+)['"]/gm)].map(
        ([, target]) => target!,
      )
    const imported = importsOf('descriptor.ts')
    expect(imported.length).toBeGreaterThan(0)
    const schemas = imported.filter((target) => /^\.\/[a-z-]+-schema\.ts$/.test(target))
    const all = [...imported.filter((target) => !schemas.includes(target)), ...schemas.flatMap(importsOf)]
    expect(all.filter((target) => !/^\.\.\/|^node:/.test(target))).toEqual([])
  })

  test('an unknown field of its config is refused with a suggestion', () => {
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-config-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const [field] = Object.keys(config.properties)
    const file = join(folder, 'tidemark.yaml')
    writeFileSync(file, `connector: ${name}\nconfig: { ${field}x: 1 }\n`)
    expect(() => readManifest(file, 'tidemark.yaml', {})).toThrow(
      `config: unknown field "${field}x". Did you mean "${field}"?`,
    )
  })
})
