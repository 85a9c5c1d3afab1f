import { compare, comparable, comparableOf, type Comparable, type EdmClass, type EdmType, type EdmValue } from './values.ts'

export type Row = Readonly<Record<string, EdmValue>>
export type Properties = Readonly<Record<string, EdmType>>

/** The query is not one the service understands: 400. */
export class BadQuery extends Error {}

export interface OrderItem {
  readonly property: string
  readonly descending: boolean
}

/** How the texts of a query are read. */
export interface QueryParser {
  /** `text`: the decoded value of `$filter`. */
  filter(text: string, version: 2 | 4): Condition
  /** `text`: the decoded value of `$orderby`. */
  orderBy(text: string): OrderItem[]
}

export type Condition =
  | { readonly kind: 'and' | 'or'; readonly parts: readonly Condition[] }
  | { readonly kind: 'not'; readonly part: Condition }
  | { readonly kind: 'compare'; readonly operator: Operator; readonly left: Operand; readonly right: Operand }
  | { readonly kind: 'call'; readonly method: string; readonly given: readonly Operand[] }

export type Operand = { readonly kind: 'property'; readonly name: string } | { readonly kind: 'literal'; readonly of: EdmClass; readonly text: string } | { readonly kind: 'null' }

export const OPERATORS = {
  eq: (order: number) => order === 0,
  ne: (order: number) => order !== 0,
  lt: (order: number) => order < 0,
  le: (order: number) => order <= 0,
  gt: (order: number) => order > 0,
  ge: (order: number) => order >= 0,
} as const

export type Operator = keyof typeof OPERATORS

/** What is not understood throws here, not when a row is met. */
export function predicateOf(condition: Condition, properties: Properties): (row: Row) => boolean {
  switch (condition.kind) {
    case 'and':
    case 'or': {
      const parts = condition.parts.map((part) => predicateOf(part, properties))
      return condition.kind === 'and' ? (row) => parts.every((holds) => holds(row)) : (row) => parts.some((holds) => holds(row))
    }
    case 'not': {
      const holds = predicateOf(condition.part, properties)
      return (row) => !holds(row)
    }
    case 'call':
      return called(condition.method, condition.given.map((operand) => valueOf(operand, properties)))
    case 'compare':
      return compared(condition.operator, valueOf(condition.left, properties), valueOf(condition.right, properties))
  }
}

export function known(name: string, properties: Properties): string {
  if (!Object.hasOwn(properties, name)) throw new BadQuery(`Could not find a property named '${name}'.`)
  return name
}

interface Value {
  /** None for null, which may be compared with anything. */
  readonly of: EdmClass | undefined
  readonly read: (row: Row) => Comparable['value']
}

function valueOf(operand: Operand, properties: Properties): Value {
  if (operand.kind === 'null') return { of: undefined, read: () => null }
  if (operand.kind === 'property') {
    const name = known(operand.name, properties)
    const type = properties[name]!
    return { of: comparableOf(type, null).class, read: (row) => comparableOf(type, row[name] ?? null).value }
  }
  try {
    const value = comparable(operand.of, operand.text)
    return { of: operand.of, read: () => value }
  } catch (cause) {
    throw new BadQuery(`${operand.text} is no ${operand.of}.`, { cause })
  }
}

function compared(operator: Operator, left: Value, right: Value): (row: Row) => boolean {
  if (left.of !== undefined && right.of !== undefined && left.of !== right.of) throw new BadQuery(`A ${left.of} and a ${right.of} cannot be compared.`)
  const isEquality = operator === 'eq' || operator === 'ne'
  return (row) => {
    const [a, b] = [left.read(row), right.read(row)]
    // Null is equal to null alone, and neither before nor after anything.
    if ((a === null || b === null) && !isEquality) return false
    return OPERATORS[operator](compare(a, b))
  }
}

const METHODS: Readonly<Record<string, (text: string, part: string) => boolean>> = {
  contains: (text, part) => text.includes(part),
  startswith: (text, part) => text.startsWith(part),
  endswith: (text, part) => text.endsWith(part),
}

function called(name: string, given: readonly Value[]): (row: Row) => boolean {
  const method = METHODS[name]
  if (method === undefined) throw new BadQuery(`The function '${name}' is not supported.`)
  const [text, part] = given
  if (given.length !== 2 || text!.of !== 'text' || part!.of !== 'text') throw new BadQuery(`'${name}' takes two texts.`)
  return (row) => method(String(text!.read(row) ?? ''), String(part!.read(row) ?? ''))
}
