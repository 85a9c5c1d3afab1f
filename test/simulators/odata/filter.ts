import { defaultParser, TokenType, type Token } from '@odata/parser'
import { compare, comparable, comparableOf, type Comparable, type EdmClass, type EdmType, type EdmValue } from './values.ts'

export type Row = Readonly<Record<string, EdmValue>>
export type Properties = Readonly<Record<string, EdmType>>

/** The query is not one the service understands: 400. */
export class BadQuery extends Error {}

export interface OrderItem {
  readonly property: string
  readonly descending: boolean
}

/** `text`: the decoded value of `$filter`. What is not understood throws when it is read, not when a row is met. */
export function parseFilter(text: string, properties: Properties, version: 2 | 4): (row: Row) => boolean {
  return predicate(parsed(() => defaultParser.filter(version === 2 ? withoutV2Literals(text) : text), `$filter=${text}`), properties)
}

export function parseOrderBy(text: string, properties: Properties): OrderItem[] {
  const options = parsed(() => defaultParser.query(`$orderby=${text.replaceAll(' ', '%20')}`), `$orderby=${text}`)
  const items = (options.value as { options: Array<{ value: { items: Token[] } }> }).options[0]!.value.items
  return items.map((item) => {
    const { expr, direction } = item.value as { expr: Token; direction: number }
    return { property: known(expr.raw, properties), descending: direction < 0 }
  })
}

export function known(name: string, properties: Properties): string {
  if (!Object.hasOwn(properties, name)) throw new BadQuery(`Could not find a property named '${name}'.`)
  return name
}

function parsed(read: () => Token, what: string): Token {
  try {
    return read()
  } catch (cause) {
    throw new BadQuery(`Syntax error in ${what}: ${(cause as Error).message}`, { cause })
  }
}

type Term = 'and' | 'or' | 'not' | Token

/** The parser lets `not` reach over the `and` that follows it; so its tree is laid flat and joined by the rules of precedence. */
function predicate(token: Token, properties: Properties): (row: Row) => boolean {
  const alternatives = split(flat(token), 'or').map((terms) =>
    split(terms, 'and').map((factor) => {
      const operand = operandOf(factor.at(-1) as Token, factor.length > 1, properties)
      return factor.length % 2 === 1 ? operand : (row: Row) => !operand(row)
    }),
  )
  return (row) => alternatives.some((factors) => factors.every((holds) => holds(row)))
}

function flat(token: Token): Term[] {
  const { left, right } = token.value as { left: Token; right: Token }
  if (token.type === TokenType.AndExpression) return [...flat(left), 'and', ...flat(right)]
  if (token.type === TokenType.OrExpression) return [...flat(left), 'or', ...flat(right)]
  return token.type === TokenType.NotExpression ? ['not', ...flat(token.value as Token)] : [token]
}

function split(terms: readonly Term[], by: 'and' | 'or'): Term[][] {
  const parts: Term[][] = [[]]
  for (const term of terms) {
    if (term === by) parts.push([])
    else parts.at(-1)!.push(term)
  }
  return parts
}

const COMPARISONS: Partial<Record<TokenType, (order: number) => boolean>> = {
  [TokenType.EqualsExpression]: (order) => order === 0,
  [TokenType.NotEqualsExpression]: (order) => order !== 0,
  [TokenType.LesserThanExpression]: (order) => order < 0,
  [TokenType.LesserOrEqualsExpression]: (order) => order <= 0,
  [TokenType.GreaterThanExpression]: (order) => order > 0,
  [TokenType.GreaterOrEqualsExpression]: (order) => order >= 0,
}
const EQUALITIES = new Set([TokenType.EqualsExpression, TokenType.NotEqualsExpression])

function operandOf(token: Token, negated: boolean, properties: Properties): (row: Row) => boolean {
  if (token.type === TokenType.BoolParenExpression || token.type === TokenType.ParenExpression) return predicate(token.value as Token, properties)
  if (token.type === TokenType.MethodCallExpression) return methodCall(token, properties)
  const holds = COMPARISONS[token.type]
  if (holds === undefined) throw new BadQuery(`'${token.raw}' is no condition.`)
  if (negated) throw new BadQuery(`'not' binds closer than a comparison: put '${token.raw}' in parentheses.`)
  const { left, right } = token.value as { left: Token; right: Token }
  const a = valueOf(left, properties)
  const b = valueOf(right, properties)
  if (a.class !== undefined && b.class !== undefined && a.class !== b.class) throw new BadQuery(`A ${a.class} and a ${b.class} cannot be compared in '${token.raw}'.`)
  return (row) => {
    const [x, y] = [a.read(row), b.read(row)]
    // Null is equal to null alone, and neither before nor after anything.
    if ((x === null || y === null) && !EQUALITIES.has(token.type)) return false
    return holds(compare(x, y))
  }
}

interface Operand {
  /** None for null, which may be compared with anything. */
  readonly class: EdmClass | undefined
  readonly read: (row: Row) => Comparable['value']
}

const LITERALS: Readonly<Record<string, EdmClass>> = {
  'Edm.String': 'text', 'Edm.Boolean': 'truth', 'Edm.SByte': 'number', 'Edm.Byte': 'number', 'Edm.Int16': 'number', 'Edm.Int32': 'number', 'Edm.Int64': 'number',
  'Edm.Decimal': 'number', 'Edm.Double': 'number', 'Edm.Single': 'number', 'Edm.Guid': 'guid', 'Edm.DateTimeOffset': 'offset', 'Edm.Date': 'date',
}

function valueOf(token: Token, properties: Properties): Operand {
  if (token.type === TokenType.Literal) return literalOf(token)
  const name = known(token.raw, properties)
  const type = properties[name]!
  return { class: comparableOf(type, null).class, read: (row) => comparableOf(type, row[name] ?? null).value }
}

function literalOf(token: Token): Operand {
  if (token.raw === 'null') return { class: undefined, read: () => null }
  const marked = V2_MARKED.exec(token.raw)
  const [of, text] = marked === null ? [LITERALS[token.value as string], token.raw] : [marked[1] as EdmClass, marked[2]!]
  if (of === undefined) throw new BadQuery(`A literal such as ${token.raw} is not supported.`)
  const plain = of === 'text' ? token.raw.slice(1, -1).replaceAll("''", "'") : text
  try {
    const value = comparable(of, plain)
    return { class: of, read: () => value }
  } catch (cause) {
    throw new BadQuery(`${token.raw} is no ${of}.`, { cause })
  }
}

function methodCall(token: Token, properties: Properties): (row: Row) => boolean {
  const { method, parameters } = token.value as { method: string; parameters: Token[] }
  const operands = parameters.map((parameter) => valueOf(parameter, properties))
  if (operands.length !== 2 || operands.some((operand) => operand.class !== 'text')) throw new BadQuery(`'${token.raw}' is not supported.`)
  const texts = (row: Row): [string, string] => [String(operands[0]!.read(row) ?? ''), String(operands[1]!.read(row) ?? '')]
  if (method === 'contains') return (row) => texts(row)[0].includes(texts(row)[1])
  if (method === 'startswith') return (row) => texts(row)[0].startsWith(texts(row)[1])
  if (method === 'endswith') return (row) => texts(row)[0].endsWith(texts(row)[1])
  throw new BadQuery(`The function '${method}' is not supported.`)
}

const V2_MARKED = /^'\ue000(\w+):(.*)'$/s
const V2_LITERAL = /'(?:[^']|'')*'|\b(datetimeoffset|datetime|guid)'([^']*)'|\b\d{4}-\d\d-\d\dT[\d:.]*|\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b|(-?\b\d+(?:\.\d+)?)[lLmMdDfF]\b/g

/** Version 2 writes its literals in ways of its own, and does not know those of version 4. */
function withoutV2Literals(text: string): string {
  return text.replaceAll(V2_LITERAL, (all: string, type: string | undefined, value: string | undefined, number: string | undefined) => {
    if (type !== undefined) return `'\ue000${type === 'datetimeoffset' ? 'offset' : type}:${value!}'`
    if (number !== undefined) return number
    if (all.startsWith("'")) return all
    throw new BadQuery(`${all} is no literal of OData 2: times are written datetime'…' or datetimeoffset'…', guids guid'…'.`)
  })
}
