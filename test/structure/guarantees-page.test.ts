import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')
const page = readFileSync(join(root, 'docs/explanation/guarantees.md'), 'utf8')

function invariantsOf(text: string): Array<[number: string, promise: string]> {
  return [...text.matchAll(/^\| (\d+) \| (.+?) \|/gm)].map(([, number = '', promise = '']) => [number, promise])
}

describe('the page of guarantees', () => {
  test('promises exactly the invariants of ARCHITECTURE.md, in their words', () => {
    const invariants = invariantsOf(readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8'))
    expect(invariants.length).toBeGreaterThan(10)
    expect(invariantsOf(page)).toEqual(invariants)
  })

  test('names evidence for every promise, and every file of it exists', () => {
    const rows = page.split('\n').filter((line) => /^\| \d+ \|/.test(line))
    for (const row of rows) {
      const evidence = [...(row.split('|').at(-2) ?? '').matchAll(/`([^`]+)`/g)].map(([, path = '']) => path)
      expect(evidence, row).not.toEqual([])
      expect(evidence.filter((path) => !existsSync(join(root, path)))).toEqual([])
    }
  })

  test('names only campaigns that exist', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: object }
    const named = [...page.matchAll(/`npm run ([\w:]+)`/g)].map(([, name = '']) => name)
    expect(named.filter((name) => !Object.hasOwn(scripts, name))).toEqual([])
  })
})
