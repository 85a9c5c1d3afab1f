import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
const PAGE = 'docs/reference/rules.md'
const RULE = /\b(?:(?:X[A-F]|[AENRS]X|[ASE]D|[AEFNORSTZ])\d{1,2}|invariant \d{1,2})\b/g
/**
 * The title of a test: the text it is declared with, also below a table of cases; or any text that opens with a rule.
 */
const TITLES = [
  /(?:\b(?:test|it|describe|rule)(?:\.\w+(?:\([^()\n]*\))?)*\(|\)\()\s*(['"`])((?:(?!\1)[^\\\n]|\\.)*)\1/g,
  /(['"`])((?:(?:(?:X[A-F]|[AENRS]X|[ASE]D|[AEFNORSTZ])\d{1,2}|invariant \d{1,2})(?:, |: | ))+)/g,
]

const page = new Map(rowsOf(readFileSync(join(root, PAGE), 'utf8')).map((row) => [row.rule, row.files]))
const borne = new Map(testFiles().map((file) => [file, rulesIn(readFileSync(join(root, file), 'utf8'))]))

describe('the page of rules', () => {
  test('names for every rule a file whose tests have its number', () => {
    const empty: string[] = []
    for (const [rule, files] of page) {
      for (const file of files)
        if (borne.get(file)?.has(rule) !== true) empty.push(`${rule}: no test in ${file} has its number`)
    }
    expect(empty).toEqual([])
  })

  test('has a line for every rule number in a test title', () => {
    const missing: string[] = []
    for (const [file, rules] of borne) {
      for (const rule of rules) if (!page.has(rule)) missing.push(`${rule}, of ${file}: add its line to ${PAGE}`)
    }
    expect(missing).toEqual([])
  })

  test('has no rule twice', () => {
    const rules = rowsOf(readFileSync(join(root, PAGE), 'utf8')).map((row) => row.rule)
    expect(rules.filter((rule, at) => rules.indexOf(rule) !== at)).toEqual([])
  })

  test('the check can fail: titles of every form are found, and nothing else', () => {
    const code = [
      "test('N1 a title', () => { const T1 = 1 })",
      "test.each([\n  ['a', 1],\n])('XC2 F11: %s', () => {})",
      "rule(`invariant 9: it's`, () => {})",
      "describe.skipIf(!can('E9'))('Z3, NX1 later', () => {})",
      "const table = [['O5 invariant 2: by name', 1]]",
      "expect(x, 'page E2').toBe(1)",
    ]
    expect([...rulesIn(code.join('\n'))].toSorted()).toEqual([
      'F11',
      'N1',
      'NX1',
      'O5',
      'XC2',
      'Z3',
      'invariant 2',
      'invariant 9',
    ])
    expect(rowsOf('| N1 | It is so. | `a.ts`, `b.ts` |\n| N2 | It will be. | not yet |\n| rule | | |')).toEqual([
      { rule: 'N1', files: ['a.ts', 'b.ts'] },
      { rule: 'N2', files: [] },
    ])
  })
})

function rulesIn(code: string): Set<string> {
  const titles = TITLES.flatMap((pattern) => [...code.matchAll(pattern)].map((match) => match[2]!))
  return new Set(titles.flatMap((title) => title.match(RULE) ?? []))
}

function rowsOf(text: string): Array<{ rule: string; files: string[] }> {
  return [...text.matchAll(/^\| ([A-Z]{1,2}\d+|invariant \d+) \|.*\| ([^|]*) \|$/gm)].map(([, rule, files]) => ({
    rule: rule!,
    files: [...files!.matchAll(/`([^`]+)`/g)].map((match) => match[1]!),
  }))
}

function testFiles(): string[] {
  return ['test', 'src/testing']
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.ts') && !file.includes('node_modules'))
        .map((file) => `${folder}/${file}`),
    )
    .filter((file) => file !== 'test/structure/rules.test.ts')
}
