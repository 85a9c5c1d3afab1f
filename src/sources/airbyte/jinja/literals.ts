import { fromBigInt, PyFloat, PyTuple, setMember, toFloat, type PyDict, type PyValue } from './values.ts'

const DEPTH_MAX = 90

/** A value that a rendered text stands for. */
export interface Literal {
  readonly value: PyValue
}

/**
 * `ast.literal_eval`: what Python reads from a text that is one literal, else null. Sets, bytes and complex numbers are
 * not JSON and stay text.
 */
export function readLiteral(text: string): Literal | null {
  // Most texts are names or sentences. A literal begins with one of few characters.
  const start = skipEmptyLines(text.replace(/^[ \t]+/, ''))
  if (!/^[-+\d.([{'"TFNrRuU]/.test(start)) return null
  try {
    return { value: new LiteralReader(start).read() }
  } catch (error) {
    if (error instanceof NotLiteral) return null
    throw error
  }
}

/** Lines that are empty or only a comment may precede a literal. */
function skipEmptyLines(text: string): string {
  let start = 0
  for (;;) {
    const end = text.indexOf('\n', start)
    if (end < 0 || !/^(?:#|$)/.test(text.slice(start, end).trim())) return text.slice(start)
    start = end + 1
  }
}

class NotLiteral extends Error {}

class LiteralReader {
  readonly #text: string
  #at = 0
  #depth = 0
  /** Newlines separate statements unless they are within brackets. */
  #brackets = 0

  constructor(text: string) {
    this.#text = text
  }

  read(): PyValue {
    const value = this.#readTuple()
    this.#skipBlank()
    // Empty lines may follow.
    while (this.#at < this.#text.length && /[\s]/.test(this.#text[this.#at] ?? '')) this.#at++
    this.#skipBlank()
    if (this.#at < this.#text.length) throw new NotLiteral()
    return value
  }

  /** A list of values without brackets is a tuple. */
  #readTuple(): PyValue {
    const first = this.#readValue()
    if (!this.#take(',')) return first
    const items = [first]
    while (!this.#isEnd()) {
      items.push(this.#readValue())
      if (!this.#take(',')) break
    }
    return new PyTuple(items)
  }

  #isEnd(): boolean {
    this.#skipBlank()
    const next = this.#text[this.#at]
    return next === undefined || next === ')' || next === '\n'
  }

  #readValue(): PyValue {
    this.#depth++
    if (this.#depth > DEPTH_MAX) throw new NotLiteral()
    this.#skipBlank()
    const next = this.#text[this.#at] ?? ''
    const value = this.#readValueAt(next)
    this.#depth--
    return value
  }

  #readValueAt(next: string): PyValue {
    if (next === '[') return this.#readList()
    if (next === '(') return this.#readParentheses()
    if (next === '{') return this.#readDict()
    if (/[-+\d.]/.test(next)) return this.#readNumber()
    const word = /^(?:True|False|None)(?![\w])/.exec(this.#text.slice(this.#at, this.#at + 6))?.[0]
    if (word !== undefined) {
      this.#at += word.length
      return word === 'None' ? null : word === 'True'
    }
    return this.#readStrings()
  }

  #readList(): PyValue {
    const items: PyValue[] = []
    this.#open()
    while (!this.#close(']')) {
      items.push(this.#readValue())
      if (!this.#take(',') && !this.#sees(']')) throw new NotLiteral()
    }
    return items
  }

  #readParentheses(): PyValue {
    this.#open()
    if (this.#close(')')) return new PyTuple([])
    const value = this.#readTuple()
    if (!this.#close(')')) throw new NotLiteral()
    return value
  }

  #readDict(): PyValue {
    const dict: PyDict = {}
    this.#open()
    while (!this.#close('}')) {
      const name = this.#readValue()
      if (!this.#take(':')) throw new NotLiteral()
      const value = this.#readValue()
      if (typeof name === 'object' && name !== null && !(name instanceof PyFloat) && !(name instanceof PyTuple))
        throw new NotLiteral()
      setMember(dict, nameOf(name), value)
      if (!this.#take(',') && !this.#sees('}')) throw new NotLiteral()
    }
    return dict
  }

  #readNumber(): PyValue {
    const rest = this.#text.slice(this.#at)
    const sign = /^[-+]/.exec(rest)?.[0] ?? ''
    const gap = sign === '' ? '' : (/^[ \t]*/.exec(rest.slice(1))?.[0] ?? '')
    const digits = rest.slice(sign.length + gap.length)
    const found =
      /^(?:0[xX](?:_?[\da-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+)/.exec(digits) ??
      /^(?:(?:\d(?:_?\d)*)?\.\d(?:_?\d)*|\d(?:_?\d)*\.?)(?:[eE][-+]?\d(?:_?\d)*)?/.exec(digits)
    const text = found?.[0]
    if (text === undefined || /^[\w.]/.test(digits.slice(text.length))) throw new NotLiteral()
    this.#at += sign.length + gap.length + text.length
    const plain = text.replaceAll('_', '')
    const isInteger = /^(?:0[xXoObB]|\d+$)/.test(plain)
    if (isInteger && /^0\d*[1-9]/.test(plain)) throw new NotLiteral()
    if (!isInteger) return toFloat(sign === '-' ? -Number(plain) : Number(plain))
    if (plain.length > 4_300) throw new NotLiteral()
    const value = BigInt(plain)
    return fromBigInt(sign === '-' ? -value : value)
  }

  /** Adjacent texts are one text. */
  #readStrings(): string {
    let text = this.#readString()
    for (;;) {
      const before = this.#at
      this.#skipBlank()
      if (!/^(?:[rRuU]?['"])/.test(this.#text.slice(this.#at, this.#at + 2))) {
        this.#at = before
        return text
      }
      text += this.#readString()
    }
  }

  #readString(): string {
    const prefix = /^[rRuU]?(?=['"])/.exec(this.#text.slice(this.#at, this.#at + 2))?.[0]
    if (prefix === undefined) throw new NotLiteral()
    this.#at += prefix.length
    const mark = this.#text[this.#at] ?? ''
    const fence = this.#text.startsWith(mark.repeat(3), this.#at) ? mark.repeat(3) : mark
    const start = this.#at + fence.length
    let at = start
    while (!this.#text.startsWith(fence, at)) {
      if (at >= this.#text.length || (fence.length === 1 && this.#text[at] === '\n')) throw new NotLiteral()
      at += this.#text[at] === '\\' ? 2 : 1
    }
    this.#at = at + fence.length
    const body = this.#text.slice(start, at)
    return /^r$/i.test(prefix) ? body : unescapePython(body)
  }

  #open(): void {
    this.#at++
    this.#brackets++
  }

  #close(mark: string): boolean {
    if (!this.#take(mark)) return false
    this.#brackets--
    return true
  }

  #take(mark: string): boolean {
    if (!this.#sees(mark)) return false
    this.#at++
    return true
  }

  #sees(mark: string): boolean {
    this.#skipBlank()
    return this.#text[this.#at] === mark
  }

  #skipBlank(): void {
    const blank = this.#brackets > 0 ? /[\s\f]/ : /[ \t\f]/
    for (;;) {
      const next = this.#text[this.#at]
      if (next === '#') while (this.#at < this.#text.length && this.#text[this.#at] !== '\n') this.#at++
      else if (next !== undefined && blank.test(next)) this.#at++
      else return
    }
  }
}

function nameOf(value: PyValue): string {
  if (typeof value === 'string') return value
  if (value === null) return 'None'
  if (value === true) return 'True'
  if (value === false) return 'False'
  if (typeof value === 'number' || typeof value === 'bigint') return String(value)
  throw new NotLiteral()
}

const SIMPLE_ESCAPES: Readonly<Record<string, string>> = {
  '\n': '',
  '\\': '\\',
  "'": "'",
  '"': '"',
  a: '\u0007',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
}

/** The escapes of a text literal of Python. An unknown escape stays as it is. */
export function unescapePython(body: string): string {
  return body.replace(
    /\\(?:([0-7]{1,3})|x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|([\s\S]))/g,
    (whole, octal?: string, hex?: string, short?: string, long?: string, simple?: string) => {
      if (octal !== undefined) return String.fromCodePoint(Number.parseInt(octal, 8))
      const code = hex ?? short ?? long
      if (code !== undefined) {
        const point = Number.parseInt(code, 16)
        if (point > 0x10ffff) throw new NotLiteral()
        return String.fromCodePoint(point)
      }
      return SIMPLE_ESCAPES[simple ?? ''] ?? whole
    },
  )
}
