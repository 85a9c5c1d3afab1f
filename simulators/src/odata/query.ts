import {
  compare,
  parseComparable,
  toComparable,
  type Comparable,
  type EdmClass,
  type EdmType,
  type EdmValue,
} from './values.ts'
import { required } from '../kit/required.ts'

/** An entity of the simulated service, as it is sent. */
export type Row = Readonly<Record<string, EdmValue>>
export type Properties = Readonly<Record<string, EdmType>>

/** The service does not understand the query: 400. */
export class BadQueryError extends Error {}

export interface OrderItem {
  readonly property: string
  readonly descending: boolean
}

/** How query texts are parsed. */
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
  | { readonly kind: 'call'; readonly method: string; readonly args: readonly Operand[] }

export type Operand =
  | { readonly kind: 'property'; readonly name: string }
  | { readonly kind: 'literal'; readonly edmClass: EdmClass; readonly text: string }
  | { readonly kind: 'null' }

export const OPERATORS = {
  eq: (order: number) => order === 0,
  ne: (order: number) => order !== 0,
  lt: (order: number) => order < 0,
  le: (order: number) => order <= 0,
  gt: (order: number) => order > 0,
  ge: (order: number) => order >= 0,
} as const

export type Operator = keyof typeof OPERATORS

/** Errors are thrown here, before any row is evaluated. */
export function compilePredicate(condition: Condition, properties: Properties): (row: Row) => boolean {
  switch (condition.kind) {
    case 'and':
    case 'or': {
      const parts = condition.parts.map((part) => compilePredicate(part, properties))
      return condition.kind === 'and'
        ? (row) => parts.every((holds) => holds(row))
        : (row) => parts.some((holds) => holds(row))
    }
    case 'not': {
      const holds = compilePredicate(condition.part, properties)
      return (row) => !holds(row)
    }
    case 'call':
      return compileMethodCall(
        condition.method,
        condition.args.map((operand) => compileOperand(operand, properties)),
      )
    case 'compare':
      return compileComparison(
        condition.operator,
        compileOperand(condition.left, properties),
        compileOperand(condition.right, properties),
      )
  }
}

export function requireProperty(name: string, properties: Properties): string {
  if (!Object.hasOwn(properties, name)) throw new BadQueryError(`Could not find a property named '${name}'.`)
  return name
}

interface OperandValue {
  /** None for null, which may be compared with anything. */
  readonly edmClass: EdmClass | undefined
  readonly read: (row: Row) => Comparable['value']
}

function compileOperand(operand: Operand, properties: Properties): OperandValue {
  if (operand.kind === 'null') return { edmClass: undefined, read: () => null }
  if (operand.kind === 'property') {
    const name = requireProperty(operand.name, properties)
    const type = required(properties[name], 'properties[name]')
    return { edmClass: toComparable(type, null).class, read: (row) => toComparable(type, row[name] ?? null).value }
  }
  try {
    const value = parseComparable(operand.edmClass, operand.text)
    return { edmClass: operand.edmClass, read: () => value }
  } catch (cause) {
    throw new BadQueryError(`${operand.text} is no ${operand.edmClass}.`, { cause })
  }
}

function compileComparison(operator: Operator, left: OperandValue, right: OperandValue): (row: Row) => boolean {
  if (left.edmClass !== undefined && right.edmClass !== undefined && left.edmClass !== right.edmClass)
    throw new BadQueryError(`A ${left.edmClass} and a ${right.edmClass} cannot be compared.`)
  const isEquality = operator === 'eq' || operator === 'ne'
  return (row) => {
    const [a, b] = [left.read(row), right.read(row)]
    // Null equals null only, and is neither before nor after any value.
    if ((a === null || b === null) && !isEquality) return false
    return OPERATORS[operator](compare(a, b))
  }
}

const METHODS: Readonly<Record<string, (text: string, part: string) => boolean>> = {
  contains: (text, part) => text.includes(part),
  startswith: (text, part) => text.startsWith(part),
  endswith: (text, part) => text.endsWith(part),
}

function compileMethodCall(name: string, given: readonly OperandValue[]): (row: Row) => boolean {
  const method = METHODS[name]
  if (method === undefined) throw new BadQueryError(`The function '${name}' is not supported.`)
  const [text, part] = given
  if (given.length !== 2 || required(text, 'text').edmClass !== 'text' || required(part, 'part').edmClass !== 'text')
    throw new BadQueryError(`'${name}' takes two texts.`)
  return (row) => method(String(required(text, 'text').read(row) ?? ''), String(required(part, 'part').read(row) ?? ''))
}
