import { required } from '../required.ts'

/**
 * The part of the GraphQL language that readers use: queries with variables, aliases, fragments, @include and @skip.
 */
export type ValueNode =
  | { readonly kind: 'constant'; readonly value: unknown }
  | { readonly kind: 'variable'; readonly name: string }
  | { readonly kind: 'list'; readonly items: readonly ValueNode[] }
  | { readonly kind: 'object'; readonly entries: ReadonlyArray<readonly [string, ValueNode]> }

export interface GraphqlLocation {
  readonly line: number
  readonly column: number
}

interface Directive {
  readonly name: string
  readonly args: ReadonlyMap<string, ValueNode>
}

export interface FieldNode {
  readonly kind: 'field'
  readonly name: string
  readonly key: string
  readonly args: ReadonlyMap<string, ValueNode>
  readonly directives: readonly Directive[]
  readonly selections: readonly SelectionNode[]
  readonly location: GraphqlLocation
}

export type SelectionNode =
  | FieldNode
  | {
      readonly kind: 'spread'
      readonly name: string
      readonly directives: readonly Directive[]
      readonly location: GraphqlLocation
    }
  | {
      readonly kind: 'inline'
      readonly on: string | undefined
      readonly directives: readonly Directive[]
      readonly selections: readonly SelectionNode[]
    }

export interface GraphqlOperation {
  readonly kind: 'query' | 'mutation' | 'subscription'
  readonly name: string | undefined
  readonly defaults: ReadonlyMap<string, ValueNode | undefined>
  readonly selections: readonly SelectionNode[]
}

export interface GraphqlDocument {
  readonly operations: readonly GraphqlOperation[]
  readonly fragments: ReadonlyMap<string, { readonly on: string; readonly selections: readonly SelectionNode[] }>
}

export class GraphqlSyntaxError extends Error {
  readonly location: GraphqlLocation

  constructor(message: string, location: GraphqlLocation) {
    super(message)
    this.location = location
  }
}

export function parseDocument(text: string): GraphqlDocument {
  return new Parser(text).document()
}

interface Token {
  readonly kind: 'name' | 'number' | 'string' | 'sign' | 'end'
  readonly text: string
  readonly at: number
}

const TOKEN =
  /(?:[\s,\uFEFF]|#[^\n]*(?![^\n]))*(?:("""[\s\S]*?"""|"(?:[^"\\\n]|\\.)*")|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|(\.\.\.|[!$()[\]{}:=@|&])|$)/y

class Parser {
  readonly #text: string
  readonly #tokens: Token[] = []
  #next = 0

  constructor(text: string) {
    this.#text = text
    TOKEN.lastIndex = 0
    for (;;) {
      const from = TOKEN.lastIndex
      const match = TOKEN.exec(text)
      if (match === null)
        throw new GraphqlSyntaxError(
          `Unexpected character "${text.slice(from).trimStart()[0] ?? ''}"`,
          this.#locate(from),
        )
      const [whole, string, number, name, sign] = match
      const token = string ?? number ?? name ?? sign ?? ''
      const kind =
        string !== undefined
          ? 'string'
          : number !== undefined
            ? 'number'
            : name !== undefined
              ? 'name'
              : sign !== undefined
                ? 'sign'
                : 'end'
      this.#tokens.push({ kind, text: token, at: from + whole.length - token.length })
      if (kind === 'end') break
    }
  }

  document(): GraphqlDocument {
    const operations: GraphqlOperation[] = []
    const fragments = new Map<string, { on: string; selections: SelectionNode[] }>()
    do {
      if (this.#peek('{'))
        operations.push({ kind: 'query', name: undefined, defaults: new Map(), selections: this.#selections() })
      else {
        const word = this.#name()
        if (word === 'fragment') {
          const name = this.#name()
          if (this.#name() !== 'on') this.#unexpected()
          fragments.set(name, { on: this.#name(), selections: this.#selections() })
        } else if (word === 'query' || word === 'mutation' || word === 'subscription') {
          const name = this.#token().kind === 'name' ? this.#name() : undefined
          const defaults = this.#variables()
          this.#directives()
          operations.push({ kind: word, name, defaults, selections: this.#selections() })
        } else {
          this.#next--
          this.#unexpected()
        }
      }
    } while (this.#token().kind !== 'end')
    return { operations, fragments }
  }

  #variables(): Map<string, ValueNode | undefined> {
    const defaults = new Map<string, ValueNode | undefined>()
    if (!this.#accept('(')) return defaults
    while (!this.#accept(')')) {
      this.#sign('$')
      const name = this.#name()
      this.#sign(':')
      this.#type()
      defaults.set(name, this.#accept('=') ? this.#value() : undefined)
    }
    return defaults
  }

  #type(): void {
    if (this.#accept('[')) {
      this.#type()
      this.#sign(']')
    } else this.#name()
    this.#accept('!')
  }

  #selections(): SelectionNode[] {
    const selections: SelectionNode[] = []
    this.#sign('{')
    do selections.push(this.#selection())
    while (!this.#accept('}'))
    return selections
  }

  #selection(): SelectionNode {
    const location = this.#locate(this.#token().at)
    if (this.#accept('...')) {
      const word = this.#token().kind === 'name' ? this.#name() : undefined
      if (word !== undefined && word !== 'on')
        return { kind: 'spread', name: word, directives: this.#directives(), location }
      const on = word === 'on' ? this.#name() : undefined
      const directives = this.#directives()
      return { kind: 'inline', on, directives, selections: this.#selections() }
    }
    const first = this.#name()
    const name = this.#accept(':') ? this.#name() : first
    const args = this.#arguments()
    const directives = this.#directives()
    return {
      kind: 'field',
      name,
      key: first,
      args,
      directives,
      selections: this.#peek('{') ? this.#selections() : [],
      location,
    }
  }

  #arguments(): Map<string, ValueNode> {
    const args = new Map<string, ValueNode>()
    if (!this.#accept('(')) return args
    while (!this.#accept(')')) {
      const name = this.#name()
      this.#sign(':')
      args.set(name, this.#value())
    }
    return args
  }

  #directives(): Directive[] {
    const directives: Directive[] = []
    while (this.#accept('@')) {
      const name = this.#name()
      directives.push({ name, args: this.#arguments() })
    }
    return directives
  }

  #value(): ValueNode {
    if (this.#accept('$')) return { kind: 'variable', name: this.#name() }
    if (this.#accept('[')) {
      const items: ValueNode[] = []
      while (!this.#accept(']')) items.push(this.#value())
      return { kind: 'list', items }
    }
    if (this.#accept('{')) {
      const entries: Array<readonly [string, ValueNode]> = []
      while (!this.#accept('}')) {
        const name = this.#name()
        this.#sign(':')
        entries.push([name, this.#value()])
      }
      return { kind: 'object', entries }
    }
    const token = this.#token()
    this.#next++
    switch (token.kind) {
      case 'number':
        return { kind: 'constant', value: Number(token.text) }
      case 'string':
        return {
          kind: 'constant',
          value: token.text.startsWith('"""') ? token.text.slice(3, -3).trim() : (JSON.parse(token.text) as string),
        }
      case 'name':
        return {
          kind: 'constant',
          value:
            token.text === 'null' ? null : token.text === 'true' ? true : token.text === 'false' ? false : token.text,
        }
      default:
        this.#next--
        return this.#unexpected()
    }
  }

  #token(): Token {
    return required(this.#tokens[this.#next], 'tokens[this.#next]')
  }

  #peek(sign: string): boolean {
    const token = this.#token()
    return token.kind === 'sign' && token.text === sign
  }

  #accept(sign: string): boolean {
    if (!this.#peek(sign)) return false
    this.#next++
    return true
  }

  #sign(sign: string): void {
    if (!this.#accept(sign)) this.#unexpected()
  }

  #name(): string {
    const token = this.#token()
    if (token.kind !== 'name') this.#unexpected()
    this.#next++
    return token.text
  }

  #unexpected(): never {
    const token = this.#token()
    throw new GraphqlSyntaxError(
      token.kind === 'end'
        ? 'Unexpected end of document'
        : `Expected something else than ${JSON.stringify(token.text)}`,
      this.#locate(token.at),
    )
  }

  #locate(at: number): GraphqlLocation {
    const before = this.#text.slice(0, at).split('\n')
    return { line: before.length, column: required(before.at(-1), 'an entry of before').length + 1 }
  }
}
