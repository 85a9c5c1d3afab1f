import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseAst } from 'vite'
import { describe, expect, test } from 'vitest'
import { PLANTED_BUGS } from '../planted/index.ts'
import { findCode, patchText } from '../planted/patch-text.ts'

const root = join(import.meta.dirname, '../..')

/** Folders without behaviour of their own, or code that only tests run. */
const EXEMPT = [/^src$/, /^src\/contract/, /^src\/testing/, /^src\/worker\/notion$/]

describe('planted bugs', () => {
  test('every bug can still be planted: its text occurs exactly once in its file', () => {
    const stale = PLANTED_BUGS.filter(({ file, text }) => countIn(file, text) !== 1)
    expect(stale.map(({ name, file }) => `${file}: ${name}`)).toEqual([])
  })

  test('the code with a bug parses: otherwise every test would notice it, and prove nothing', () => {
    const broken = PLANTED_BUGS.filter(({ file, text, replacement }) => {
      const code = patchText(readFileSync(join(root, file), 'utf8'), text, replacement)
      try {
        parseAst(code, { lang: file.endsWith('x') ? 'tsx' : 'ts' })
        return false
      } catch {
        return true
      }
    })
    expect(broken.map(({ name, file }) => `${file}: ${name}`)).toEqual([])
  })

  test('every bug changes its text, has a unique name and names existing tests', () => {
    const names = PLANTED_BUGS.map(({ name, file }) => `${file}: ${name}`)
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([])
    expect(PLANTED_BUGS.filter(({ text, replacement }) => text === replacement)).toEqual([])
    const paths = PLANTED_BUGS.flatMap(({ tests }) => tests)
    expect(paths.filter((path) => !path.endsWith('.test.ts') || !existsSync(join(root, path)))).toEqual([])
    expect(PLANTED_BUGS.filter(({ tests }) => tests.length === 0)).toEqual([])
  })

  test('there are at least a hundred, and every folder of src has one', () => {
    expect(PLANTED_BUGS.length).toBeGreaterThanOrEqual(100)
    const covered = new Set(PLANTED_BUGS.map(({ file }) => dirname(file)))
    const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.ts'),
    )
    const folders = [...new Set(files.map((name) => dirname(`src/${name}`)))]
    const bare = folders.filter((folder) => !covered.has(folder) && !EXEMPT.some((pattern) => pattern.test(folder)))
    expect(bare.toSorted()).toEqual([])
  })
})

function countIn(file: string, text: string): number {
  return existsSync(join(root, file)) ? findCode(readFileSync(join(root, file), 'utf8'), text).length : 0
}
