import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  listUndocumented,
  PAGES_FOLDER,
  readEntryPoints,
  renderPages,
  SIMULATORS_FOLDER,
  type EntryPoint,
} from '../../scripts/api-reference.mjs'
import { buildPackage, ROOT } from '../cli/package.ts'

const FOLDER = join(ROOT, PAGES_FOLDER)

/** Words that need a qualifier when they are imported into a program. */
const GENERIC_NAMES = ['Failure', 'Info', 'Item', 'Options', 'Pass', 'Place', 'Position', 'Result', 'Session', 'State']

let entryPoints: EntryPoint[]
beforeAll(() => {
  entryPoints = [...readEntryPoints(buildPackage()), ...readEntryPoints(SIMULATORS_FOLDER)]
})

describe('the API reference', () => {
  test('the committed pages equal the output of the generator (TIDEMARK_UPDATE=1 writes them)', () => {
    const pages = renderPages(entryPoints)
    if (process.env['TIDEMARK_UPDATE'] === '1') {
      rmSync(FOLDER, { recursive: true, force: true })
      mkdirSync(FOLDER, { recursive: true })
      for (const [file, text] of pages) writeFileSync(join(FOLDER, file), text)
    }
    expect(readdirSync(FOLDER).toSorted()).toEqual([...pages.keys()].toSorted())
    for (const [file, text] of pages) expect(readFileSync(join(FOLDER, file), 'utf8'), file).toBe(text)
  })

  test('every export of every entry point has a TSDoc comment', () => {
    expect(listUndocumented(entryPoints)).toEqual([])
    expect(entryPoints.find(({ name }) => name === 'tidemark')!.exports.length).toBeGreaterThan(100)
  })

  test('an export without a comment is listed by name', () => {
    const [first] = entryPoints[0]!.exports
    const entryPoint = { name: 'tidemark', types: 'index.d.ts', exports: [{ ...first!, description: '' }] }
    expect(listUndocumented([entryPoint])).toEqual([`tidemark: ${first!.name}`])
  })

  test('no export has a generic name', () => {
    const names = entryPoints.flatMap(({ name, exports }) => exports.map((exported) => `${name}: ${exported.name}`))
    expect(names.filter((name) => GENERIC_NAMES.includes(name.split(': ')[1]!))).toEqual([])
  })

  test.each(['Worker', 'runCycle', 'keyset', 'openStore'])('the page of tidemark has an example of %s', (name) => {
    const page = readFileSync(join(FOLDER, 'tidemark.md'), 'utf8')
    expect(page.split(/^## /m).find((section) => section.startsWith(`${name}\n`))).toContain('```ts\n')
  })
})
