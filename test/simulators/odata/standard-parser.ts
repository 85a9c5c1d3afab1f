import { defaultParser, TokenType, type Token } from '@odata/parser'
import {
  BadQueryError,
  type Condition,
  type Operand,
  type Operator,
  type QueryParser,
} from '../../../simulators/src/odata/query.ts'
import type { EdmClass } from '../../../simulators/src/odata/values.ts'

/** Parses queries with a third-party parser of the whole standard: its errors are those of a real service. */
export const standardParser: QueryParser = {
  filter: (text, version) =>
    conditionOf(parsed(() => defaultParser.filter(version === 2 ? withoutV2Literals(text) : text), `$filter=${text}`)),
  orderBy(text) {
    const options = parsed(() => defaultParser.query(`$orderby=${text.replaceAll(' ', '%20')}`), `$orderby=${text}`)
    const items = (options.value as { options: Array<{ value: { items: Token[] } }> }).options[0]!.value.items
    return items.map((item) => {
      const { expr, direction } = item.value as { expr: Token; direction: number }
      return { property: expr.raw, descending: direction < 0 }
    })
  },
}

function parsed(read: () => Token, what: string): Token {
  try {
    return read()
  } catch (cause) {
    throw new BadQueryError(`Syntax error in ${what}: ${(cause as Error).message}`, { cause })
  }
}

type Term = 'and' | 'or' | 'not' | Token

/**
 * The parser lets `not` extend over the following `and`; so its tree is flattened and joined by the rules of
 * precedence.
 */
function conditionOf(token: Token): Condition {
  const parts = split(flat(token), 'or').map((terms): Condition => ({
    kind: 'and',
    parts: split(terms, 'and').map((factor) => {
      const operand = operandOf(factor.at(-1) as Token, factor.length > 1)
      return factor.length % 2 === 1 ? operand : { kind: 'not', part: operand }
    }),
  }))
  return { kind: 'or', parts }
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

const COMPARISONS: Partial<Record<TokenType, Operator>> = {
  [TokenType.EqualsExpression]: 'eq',
  [TokenType.NotEqualsExpression]: 'ne',
  [TokenType.LesserThanExpression]: 'lt',
  [TokenType.LesserOrEqualsExpression]: 'le',
  [TokenType.GreaterThanExpression]: 'gt',
  [TokenType.GreaterOrEqualsExpression]: 'ge',
}

function operandOf(token: Token, negated: boolean): Condition {
  if (token.type === TokenType.BoolParenExpression || token.type === TokenType.ParenExpression)
    return conditionOf(token.value as Token)
  if (token.type === TokenType.MethodCallExpression) {
    const { method, parameters } = token.value as { method: string; parameters: Token[] }
    return { kind: 'call', method, args: parameters.map(valueOf) }
  }
  const operator = COMPARISONS[token.type]
  if (operator === undefined) throw new BadQueryError(`'${token.raw}' is not a condition.`)
  if (negated) throw new BadQueryError(`'not' binds closer than a comparison: put '${token.raw}' in parentheses.`)
  const { left, right } = token.value as { left: Token; right: Token }
  return { kind: 'compare', operator, left: valueOf(left), right: valueOf(right) }
}

const LITERALS: Readonly<Record<string, EdmClass>> = {
  'Edm.String': 'text',
  'Edm.Boolean': 'truth',
  'Edm.SByte': 'number',
  'Edm.Byte': 'number',
  'Edm.Int16': 'number',
  'Edm.Int32': 'number',
  'Edm.Int64': 'number',
  'Edm.Decimal': 'number',
  'Edm.Double': 'number',
  'Edm.Single': 'number',
  'Edm.Guid': 'guid',
  'Edm.DateTimeOffset': 'offset',
  'Edm.Date': 'date',
}

function valueOf(token: Token): Operand {
  if (token.type !== TokenType.Literal) return { kind: 'property', name: token.raw }
  if (token.raw === 'null') return { kind: 'null' }
  const marked = V2_MARKED.exec(token.raw)
  const [of, text] =
    marked === null ? [LITERALS[token.value as string], token.raw] : [marked[1] as EdmClass, marked[2]!]
  if (of === undefined) throw new BadQueryError(`A literal such as ${token.raw} is not supported.`)
  return { kind: 'literal', edmClass: of, text: of === 'text' ? token.raw.slice(1, -1).replaceAll("''", "'") : text }
}

const V2_MARKED = /^'\ue000(\w+):(.*)'$/s
const V2_LITERAL =
  /'(?:[^']|'')*'|\b(datetimeoffset|datetime|guid)'([^']*)'|\b\d{4}-\d\d-\d\dT[\d:.]*|\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b|(-?\b\d+(?:\.\d+)?)[lLmMdDfF]\b/g

/** Version 2 has its own literal syntax, and does not accept that of version 4. */
function withoutV2Literals(text: string): string {
  return text.replaceAll(
    V2_LITERAL,
    (all: string, type: string | undefined, value: string | undefined, number: string | undefined) => {
      if (type !== undefined) return `'\ue000${type === 'datetimeoffset' ? 'offset' : type}:${value!}'`
      if (number !== undefined) return number
      if (all.startsWith("'")) return all
      throw new BadQueryError(
        `${all} is not a literal of OData 2: times are written datetime'…' or datetimeoffset'…', guids guid'…'.`,
      )
    },
  )
}
