import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')

/** A literal can follow a bracket, a comma, an operator or a keyword. */
const LITERAL =
  /(?<=[=(,:[!&|?{};]\s*|return\s+|=>\s*|^\s*)\/(?![/*])(?:[^\\/\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[dgimsuvy]*/gm

/** An unbounded repetition inside another one: a text that it matches in many ways takes exponential time to fail. */
function repeatsWithin(pattern: string): boolean {
  const bare = pattern.replaceAll(/\\./g, 'x').replaceAll(/\[(?:[^\]])*\]/g, 'x')
  const stack: boolean[] = []
  let inside = false
  for (let at = 0; at < bare.length; at++) {
    if (bare[at] === '(') {
      stack.push(inside)
      inside = false
    } else if (bare[at] === ')') {
      const repeated = isUnbounded(bare, at + 1)
      if (repeated && inside) return true
      inside = stack.pop()! || inside || repeated
    } else if (isUnbounded(bare, at)) inside = true
  }
  return false
}

function isUnbounded(pattern: string, at: number): boolean {
  return pattern[at] === '*' || pattern[at] === '+' || /^\{\d+,\}/.test(pattern.slice(at, at + 8))
}

/**
 * Reviewed: each round begins, or ends, with a character that the rest of it cannot contain, so that there is one way
 * to match.
 */
const LOOKED_AT = new Set([
  String.raw`/^(?:\s|--[^\n]*\n|\/\*(?:(?!\*\/)[\s\S])*\*\/)*([a-z]+)/i`,
  String.raw`/tidemark-ignore ([\w./-]+): ([a-z-]+(?:, *[a-z-]+)*)/g`,
  String.raw`/^[A-Za-z]\w*(?:\.[A-Za-z]\w*)*$/`,
  String.raw`/^\/v1((?:\/[\w-]+)+)(?:\?(\w+)=([\w-]+))?$/`,
  String.raw`/\(((?:[^()']|'[^']*')*)\)$/`,
  String.raw`/^[A-Za-z_][\w$]*(?:\.[A-Za-z_][\w$]*)*$/`,
  String.raw`/(?:[\s,\uFEFF]|#[^\n]*(?![^\n]))*(?:("""[\s\S]*?"""|"(?:[^"\\\n]|\\.)*")|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|(\.\.\.|[!$()[\]{}:=@|&])|$)/y`,
])

test('Z40 no regular expression of the sources can take long to fail', () => {
  const found: string[] = []
  let count = 0
  for (const file of readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  )) {
    const code = readFileSync(join(root, 'src', file), 'utf8').replaceAll(/^\s*(?:\/\/|\*|\/\*\*).*$/gm, '')
    for (const [literal] of code.matchAll(LITERAL)) {
      count++
      if (repeatsWithin(literal) && !LOOKED_AT.has(literal)) found.push(`${file}: ${literal}`)
    }
  }
  expect(count).toBeGreaterThan(150)
  expect(found).toEqual([])
})

test('Z40 the reviewed ones fail in linear time, on their worst-case input', () => {
  // Exponential time would not end within the life of the machine; the test is that this line is reached.
  for (const text of ['/**/', "(''", "''", '--\n', '# #', 'a.', ', a', '/a', ' ,', '"a" ']) {
    for (const literal of LOOKED_AT) {
      const [, pattern, flags] = /^\/([\s\S]*)\/(\w*)$/.exec(literal)!
      new RegExp(pattern!, flags).test(`${text.repeat(5_000)}\u0000`)
    }
  }
  expect(LOOKED_AT.size).toBeGreaterThan(0)
})

test('Z40 the check can fail: nested repetitions are found, and only those', () => {
  expect(['/(a+)+$/', '/^(?:\\w+\\s?)*$/', '/((ab)*c*){2,}x/', '/(?:a|b+)*/'].map(repeatsWithin)).toEqual([
    true,
    true,
    true,
    true,
  ])
  expect(
    ['/a+b+/', '/(?:ab)+/', '/[(+]+/', '/\\(a+\\)+/', '/(a{1,3})+/', '/^(\\d+)x(\\w*)$/'].map(repeatsWithin),
  ).toEqual([false, false, false, false, false, false])
})
