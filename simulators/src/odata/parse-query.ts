import {
  BadQueryError,
  OPERATORS,
  type Condition,
  type Operand,
  type Operator,
  type OrderItem,
  type QueryParser,
} from './query.ts'
import type { EdmClass } from './values.ts'
import { required } from '../kit/required.ts'

/**
 * The part of OData's query language that the simulator supports, and no more. A test compares it with a full parser.
 */
export const builtInParser: QueryParser = {
  filter: (text, version) => new FilterParser(text, version).parse(),
  orderBy: (text) =>
    text.split(',').map((item) => {
      const [, property, direction] = /^\s*(\w+)(?:\s+(asc|desc))?\s*$/.exec(item) ?? throwBadQuery(item)
      return { property: required(property, 'property'), descending: direction === 'desc' } satisfies OrderItem
    }),
}

interface QueryToken {
  readonly text: string
  readonly operand?: Operand
}

const NUMBER = String.raw`-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?`
const GUID = '[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}'
const DATE = String.raw`\d{4}-\d\d-\d\d`
const TIME = String.raw`T\d\d:\d\d(?::\d\d(?:\.\d{1,12})?)?`

/** Each version has its own literal syntax and does not accept the other's. The first match is taken. */
const LITERALS: Readonly<Record<2 | 4, ReadonlyArray<readonly [EdmClass, RegExp]>>> = {
  2: [
    ['offset', /datetimeoffset'([^']*)'/y],
    ['datetime', /datetime'([^']*)'/y],
    ['guid', /guid'([^']*)'/y],
    ['number', new RegExp(`(${NUMBER})[lLmMdDfF]?(?![\\w-])`, 'y')],
  ],
  4: [
    ['guid', new RegExp(`(${GUID})(?!\\w)`, 'y')],
    ['offset', new RegExp(`(${DATE}${TIME}(?:Z|[+-]\\d\\d:\\d\\d))(?!\\w)`, 'y')],
    ['date', new RegExp(`(${DATE})(?!\\w)`, 'y')],
    ['number', new RegExp(`(${NUMBER})(?![\\w-])`, 'y')],
  ],
}

/** `or` of `and` of optionally negated terms. */
class FilterParser {
  readonly #words: readonly QueryToken[]
  readonly #text: string
  #at = 0

  constructor(text: string, version: 2 | 4) {
    this.#text = text
    this.#words = tokenize(text, version)
  }

  parse(): Condition {
    const condition = this.#joined('or')
    if (this.#at < this.#words.length) throwBadQuery(this.#text)
    return condition
  }

  #joined(by: 'and' | 'or'): Condition {
    const parts: Condition[] = []
    do parts.push(by === 'or' ? this.#joined('and') : this.#factor(false))
    while (this.#takes(by))
    return parts.length === 1 ? required(parts[0], 'parts[0]') : { kind: by, parts }
  }

  #factor(isNegated: boolean): Condition {
    if (this.#takes('not')) return { kind: 'not', part: this.#factor(true) }
    if (this.#takes('(')) {
      const inner = this.#joined('or')
      this.#expect(')')
      return inner
    }
    if (this.#words[this.#at + 1]?.text === '(') return this.#call()
    const left = this.#operand()
    const operator = this.#next().text
    if (!Object.hasOwn(OPERATORS, operator)) throwBadQuery(this.#text)
    if (isNegated)
      throw new BadQueryError("'not' binds closer than a comparison: put the negated expression in parentheses.")
    return { kind: 'compare', operator: operator as Operator, left, right: this.#operand() }
  }

  #call(): Condition {
    const method = this.#next().text
    const given: Operand[] = []
    this.#expect('(')
    do given.push(this.#operand())
    while (this.#takes(','))
    this.#expect(')')
    return { kind: 'call', method, args: given }
  }

  #operand(): Operand {
    const { text, operand } = this.#next()
    if (operand !== undefined) return operand
    return /^[A-Za-z_]\w*$/.test(text) ? { kind: 'property', name: text } : throwBadQuery(this.#text)
  }

  #next(): QueryToken {
    return this.#words[this.#at++] ?? throwBadQuery(this.#text)
  }

  #takes(word: string): boolean {
    const { text, operand } = this.#words[this.#at] ?? { text: '' }
    if (text !== word || operand !== undefined) return false
    this.#at++
    return true
  }

  #expect(word: string): void {
    if (!this.#takes(word)) throwBadQuery(this.#text)
  }
}

function tokenize(text: string, version: 2 | 4): QueryToken[] {
  const words: QueryToken[] = []
  const taken = (pattern: RegExp, at: number): RegExpExecArray | null => {
    pattern.lastIndex = at
    return pattern.exec(text)
  }
  for (let at = 0; at < text.length;) {
    const [all, word] = matchLiteral(taken, at, version) ?? matchBareToken(taken, at) ?? throwBadQuery(text.slice(at))
    if (word !== null) words.push(word)
    at += all.length
  }
  return words
}

type MatchAt = (pattern: RegExp, at: number) => RegExpExecArray | null

function matchLiteral(taken: MatchAt, at: number, version: 2 | 4): [string, QueryToken] | null {
  const quoted = taken(/'((?:[^']|'')*)'/y, at)
  if (quoted !== null)
    return [
      quoted[0],
      {
        text: quoted[0],
        operand: { kind: 'literal', edmClass: 'text', text: required(quoted[1], 'quoted[1]').replaceAll("''", "'") },
      },
    ]
  for (const [of, pattern] of LITERALS[version]) {
    const found = taken(pattern, at)
    if (found !== null)
      return [
        found[0],
        { text: found[0], operand: { kind: 'literal', edmClass: of, text: required(found[1], 'found[1]') } },
      ]
  }
  const truth = taken(/(true|false|null)\b/y, at)
  return truth === null
    ? null
    : [
        truth[0],
        {
          text: truth[0],
          operand: truth[0] === 'null' ? { kind: 'null' } : { kind: 'literal', edmClass: 'truth', text: truth[0] },
        },
      ]
}

function matchBareToken(taken: MatchAt, at: number): [string, QueryToken | null] | null {
  const space = taken(/\s+/y, at)
  if (space !== null) return [space[0], null]
  const bare = taken(/[A-Za-z_]\w*|[(),]/y, at)
  return bare === null ? null : [bare[0], { text: bare[0] }]
}

function throwBadQuery(text: string): never {
  throw new BadQueryError(`Syntax error in '${text}'.`)
}
