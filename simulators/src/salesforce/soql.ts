import { required } from '../kit/required.ts'

/**
 * A small part of SOQL, refused where Salesforce refuses it: AND and OR do not mix without parentheses, date-times are
 * not quoted, and a `+` decoded as a space is an invalid date-time.
 */
export type Operator = '=' | '!=' | '<' | '<=' | '>' | '>=' | 'like'
export type Literal =
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'number'; readonly value: number }
  | { readonly kind: 'boolean'; readonly value: boolean }
  | { readonly kind: 'datetime'; readonly value: number }
  | { readonly kind: 'null'; readonly value: null }

export type Condition =
  | { readonly kind: 'and' | 'or'; readonly all: readonly Condition[] }
  | { readonly kind: 'not'; readonly of: Condition }
  | { readonly kind: 'compare'; readonly field: string; readonly operator: Operator; readonly value: Literal }
  | { readonly kind: 'in'; readonly field: string; readonly negated: boolean; readonly values: readonly Literal[] }

export interface Soql {
  readonly fields: readonly string[]
  readonly count: boolean
  readonly from: string
  readonly where: Condition | undefined
  readonly orderBy: ReadonlyArray<{ readonly field: string; readonly descending: boolean; readonly nullsLast: boolean }>
  readonly limit: number | undefined
  readonly offset: number
}

export class MalformedQueryError extends Error {}

export function parseSoql(text: string): Soql {
  return new Parser(text).query()
}

const TOKEN =
  /\s*(?:('(?:[^'\\]|\\.)*')|(\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:?\d{2}))?(?![\w.:]))|(-?\d+(?:\.\d+)?(?![\w.:]))|([A-Za-z_][\w.]*)|(<=|>=|!=|<>|[=<>(),]))/y

interface Token {
  readonly kind: 'string' | 'datetime' | 'number' | 'word' | 'sign'
  readonly text: string
}

class Parser {
  readonly #tokens: Token[] = []
  #at = 0

  constructor(text: string) {
    TOKEN.lastIndex = 0
    const source = text.trimEnd()
    while (TOKEN.lastIndex < source.length) {
      const from = TOKEN.lastIndex
      const match = TOKEN.exec(source)
      if (match === null)
        throw new MalformedQueryError(
          `${source}\n${' '.repeat(from)}^\nERROR at Row:1:Column:${from + 1}\nline 1:${from} no viable alternative at character '${source.slice(from).trimStart()[0] ?? ''}'`,
        )
      const kind =
        match[1] !== undefined
          ? 'string'
          : match[2] !== undefined
            ? 'datetime'
            : match[3] !== undefined
              ? 'number'
              : match[4] !== undefined
                ? 'word'
                : 'sign'
      this.#tokens.push({ kind, text: match[0].trim() })
    }
  }

  query(): Soql {
    this.#keyword('select')
    const { fields, count } = this.#selection()
    this.#keyword('from')
    const from = this.#word()
    const where = this.#accept('where') ? this.#condition() : undefined
    const orderBy = this.#accept('order') ? this.#orderBy() : []
    const limit = this.#accept('limit') ? this.#integer() : undefined
    const offset = this.#accept('offset') ? this.#integer() : 0
    if (this.#at < this.#tokens.length) this.#unexpected()
    return { fields, count, from, where, orderBy, limit, offset }
  }

  #selection(): { fields: string[]; count: boolean } {
    const fields: string[] = []
    do {
      const field = this.#word()
      if (field.toLowerCase() === 'count' && this.#acceptSign('(')) {
        this.#sign(')')
        return { fields, count: true }
      }
      if (field.toLowerCase() === 'fields' && this.#acceptSign('(')) {
        fields.push(`FIELDS(${this.#word().toUpperCase()})`)
        this.#sign(')')
      } else fields.push(field)
    } while (this.#acceptSign(','))
    return { fields, count: false }
  }

  #condition(): Condition {
    const all = [this.#simple()]
    let joined: 'and' | 'or' | undefined
    for (;;) {
      const word = this.#peekWord()
      if (word !== 'and' && word !== 'or') break
      if (joined !== undefined && joined !== word) this.#unexpected()
      joined = word
      this.#at++
      all.push(this.#simple())
    }
    return joined === undefined ? required(all[0], 'all[0]') : { kind: joined, all }
  }

  #simple(): Condition {
    if (this.#accept('not')) return { kind: 'not', of: this.#simple() }
    if (this.#acceptSign('(')) {
      const inner = this.#condition()
      this.#sign(')')
      return inner
    }
    const field = this.#word()
    const negated = this.#accept('not')
    if (negated || this.#peekWord() === 'in') {
      this.#keyword('in')
      this.#sign('(')
      const values: Literal[] = []
      do values.push(this.#literal())
      while (this.#acceptSign(','))
      this.#sign(')')
      return { kind: 'in', field, negated, values }
    }
    if (this.#accept('like')) return { kind: 'compare', field, operator: 'like', value: this.#literal() }
    const token = this.#next()
    if (token.kind !== 'sign' || '(),'.includes(token.text)) this.#unexpected(token)
    return {
      kind: 'compare',
      field,
      operator: (token.text === '<>' ? '!=' : token.text) as Operator,
      value: this.#literal(),
    }
  }

  #literal(): Literal {
    const token = this.#next()
    switch (token.kind) {
      case 'string':
        return { kind: 'string', value: unescape(token.text.slice(1, -1)) }
      case 'number':
        return { kind: 'number', value: Number(token.text) }
      case 'datetime':
        return { kind: 'datetime', value: parseInstant(token.text) }
      case 'word': {
        const word = token.text.toLowerCase()
        if (word === 'null') return { kind: 'null', value: null }
        if (word === 'true' || word === 'false') return { kind: 'boolean', value: word === 'true' }
        return this.#unexpected(token)
      }
      case 'sign':
        return this.#unexpected(token)
    }
  }

  #orderBy(): Array<{ field: string; descending: boolean; nullsLast: boolean }> {
    this.#keyword('by')
    const order: Array<{ field: string; descending: boolean; nullsLast: boolean }> = []
    do {
      const field = this.#word()
      const descending = this.#accept('desc')
      if (!descending) this.#accept('asc')
      let nullsLast = false
      if (this.#accept('nulls')) {
        nullsLast = this.#accept('last')
        if (!nullsLast) this.#keyword('first')
      }
      order.push({ field, descending, nullsLast })
    } while (this.#acceptSign(','))
    return order
  }

  #peekWord(): string | undefined {
    const token = this.#tokens[this.#at]
    return token?.kind === 'word' ? token.text.toLowerCase() : undefined
  }

  #accept(word: string): boolean {
    if (this.#peekWord() !== word) return false
    this.#at++
    return true
  }

  #keyword(word: string): void {
    if (!this.#accept(word)) this.#unexpected()
  }

  #acceptSign(sign: string): boolean {
    const token = this.#tokens[this.#at]
    if (token?.kind !== 'sign' || token.text !== sign) return false
    this.#at++
    return true
  }

  #sign(sign: string): void {
    if (!this.#acceptSign(sign)) this.#unexpected()
  }

  #word(): string {
    const token = this.#next()
    return token.kind === 'word' ? token.text : this.#unexpected(token)
  }

  #integer(): number {
    const token = this.#next()
    return token.kind === 'number' && /^\d+$/.test(token.text) ? Number(token.text) : this.#unexpected(token)
  }

  #next(): Token {
    const token = this.#tokens[this.#at]
    if (token === undefined) return this.#unexpected()
    this.#at++
    return token
  }

  #unexpected(token: Token | undefined = this.#tokens[this.#at]): never {
    throw new MalformedQueryError(`unexpected token: ${token === undefined ? '<EOF>' : `'${token.text}'`}`)
  }
}

/** Digits finer than a millisecond are dropped, as on the server. */
function parseInstant(text: string): number {
  const iso =
    text.length === 10
      ? `${text}T00:00:00Z`
      : text.replace(/(\.\d{3})\d+/, '$1').replace(/([+-]\d{2})(\d{2})$/, '$1:$2')
  const ms = Date.parse(iso)
  if (Number.isNaN(ms)) throw new MalformedQueryError(`Invalid date: ${text}`)
  return ms
}

function unescape(text: string): string {
  return text.replaceAll(/\\(.)/g, (_all, letter: string) => ({ n: '\n', r: '\r', t: '\t' })[letter] ?? letter)
}
