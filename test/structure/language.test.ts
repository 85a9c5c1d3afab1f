import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')

interface Rule {
  readonly pattern: RegExp
  /** The better word. */
  readonly instead: string
  /** Only comments and documents are searched: the word is fine as a name or a value. */
  readonly proseOnly?: boolean
}

const RULES: readonly Rule[] = [
  {
    pattern: /\b(?:whoever|somebody|anybody|nobody|everybody)\b/i,
    instead: 'name the role: the caller, a process, a user',
  },
  { pattern: /\btold\b|\btells?\b|\btelling\b/i, instead: 'report, notify, describe or show', proseOnly: true },
  {
    pattern: /\bstands? (?:on|in|at|there|still|behind|for itself)\b/i,
    instead: 'is, refers to or points to',
    proseOnly: true,
  },
  { pattern: /\bwhere (?:it|all|every \w+|they) stands?\b/i, instead: 'the status, the cursor or the sequence' },
  { pattern: /\b(?:the|one|a|its) doors?\b/i, instead: 'the API, the endpoint or the write path' },
  { pattern: /\banew\b/i, instead: 'again' },
  { pattern: /\bstop ?word\b/i, instead: 'end reason' },
  { pattern: /\b(?:braked?|doomed|buried)\b/i, instead: 'delete limit, to delete, tombstone' },
  { pattern: /\bstandings?\b/i, instead: 'status' },
  { pattern: /\bthe dead stay dead\b/i, instead: 'a tombstone keeps its time' },
]

/** The first word of a comment. A question in a document may begin so; a statement may not. */
const COMMENT_START = /(?:^|\s)(?:\/\/|\/\*\*?|\*)\s+(?:What|Who|Whoever|Those|Of)\s/

/** `export type Begun`, `interface Held`: a type is a noun. */
const PARTICIPLE_TYPE =
  /\b(?:interface|type|class)\s+(?:Begun|Held|Told|Kept|Asked|Carried|Passed|Turned|Erased|Compacted|Occupied|Landed|Written|Replayed|Seen|Found|Given|Chosen|Received|Chained)\b/

/** Quotes of what others wrote, and words of other systems. At most ten. */
const EXCEPTIONS: readonly string[] = [
  // The account of the operating system.
  "accounts.get('nobody')",
  'no account `postgres` or `nobody`',
  // The secret of an example in GitHub's documentation.
  "It's a Secret to Everybody",
]

/** Every line is inspected. */
const PRODUCT = [
  'src',
  'simulators/src',
  'console/src',
  'docs',
  'templates',
  'examples',
  'bench',
  'scripts',
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
]

/** Titles, comments and messages are inspected. Names and values may be data of a test. */
const TESTS = ['test']

describe('language', () => {
  test('texts and names use the plain words of the field', () => {
    expect(filesIn(...PRODUCT).flatMap((path) => inspect(path, (line) => line))).toEqual([])
  })

  test('titles and comments of the tests do too', () => {
    expect(filesIn(...TESTS).flatMap((path) => inspect(path, sentencesOf))).toEqual([])
  })

  test('there are at most ten exceptions, and each is still needed', () => {
    expect(EXCEPTIONS.length).toBeLessThanOrEqual(10)
    const texts = filesIn(...PRODUCT, ...TESTS)
      .filter((path) => path !== import.meta.filename)
      .map((path) => readFileSync(path, 'utf8'))
    expect(EXCEPTIONS.filter((exception) => !texts.some((text) => text.includes(exception)))).toEqual([])
  })

  test('the rules find what they forbid', () => {
    expect(inspectLine('// What has landed is told onward', true)).toHaveLength(2)
    expect(inspectLine('const x = 1 // Whoever asks', true).length).toBeGreaterThan(0)
    expect(inspectLine('export interface Begun {', false)).toHaveLength(1)
    expect(inspectLine('export interface BeginResult {', false)).toEqual([])
    expect(inspectLine("  const message = 'nobody asked'", false)).toHaveLength(1)
    expect(inspectLine('/** The newest sequence. */', true)).toEqual([])
    expect(inspectLine(sentencesOf("  test('a reader that is told nothing waits', () => {"), true)).toHaveLength(1)
    expect(inspectLine(sentencesOf("  await query('select 1', 'nobody') // Whoever reads"), true)).toHaveLength(2)
    expect(inspectLine(sentencesOf("  await find('nobody')"), true)).toEqual([])
  })
})

function inspect(path: string, select: (line: string) => string): string[] {
  const isDocument = path.endsWith('.md')
  return readFileSync(path, 'utf8')
    .split('\n')
    .flatMap((line, at) => {
      const text = select(EXCEPTIONS.reduce((rest, exception) => rest.replace(exception, ''), line))
      const problems = inspectLine(text, isDocument || /(?:^|\s)(?:\/\/|\/\*|\*)/.test(text))
      return problems.map((problem) => `${relative(root, path)}:${at + 1} ${problem}`)
    })
}

/** The comment of a line, its quoted texts of four words and more, and the type that it declares. */
function sentencesOf(line: string): string {
  const quoted = [...line.matchAll(/'([^']*)'|"([^"]*)"|`([^`]*)`/g)]
    .map(([, a = '', b = '', c = '']) => a || b || c)
    .filter((text) => text.split(' ').length > 3)
  const comment = /(?:^|\s)(?:\/\/|\/\*\*?|\*)\s.*$/.exec(line)?.[0] ?? ''
  const type = PARTICIPLE_TYPE.exec(line)?.[0] ?? ''
  return [comment || quoted.map((text) => `// ${text}`).join(' '), type].join(' ')
}

function inspectLine(line: string, isProse: boolean): string[] {
  const words = RULES.flatMap(({ pattern, instead, proseOnly }) => {
    const found = proseOnly === true && !isProse ? null : pattern.exec(line)
    return found === null ? [] : [`"${found[0].trim()}": write ${instead}`]
  })
  const start = COMMENT_START.exec(line)
  const type = PARTICIPLE_TYPE.exec(line)
  return [
    ...words,
    ...(start === null ? [] : [`"${start[0].trim()} …": begin with the subject`]),
    ...(type === null ? [] : [`"${type[0]}": name a type with a noun`]),
  ]
}

function filesIn(...paths: string[]): string[] {
  return paths.flatMap((path) => {
    const full = join(root, path)
    if (statSync(full).isFile()) return [full]
    const names = readdirSync(full, { recursive: true, encoding: 'utf8' })
    return names
      .filter((name) => /\.(?:tsx?|mjs|md)$/.test(name) && !name.includes('node_modules'))
      .map((name) => join(full, name))
      .filter((name) => name !== import.meta.filename)
  })
}
