import { parse, tokenize } from '@huggingface/jinja'
import { normalizeTemplate } from './normalize.ts'
import { applyFilter } from './filters.ts'
import { getAttribute, getItem } from './members.ts'
import { calculate, compare, contains, isEqual, isTrue, iterate, negate, requireDefined } from './operators.ts'
import { print } from './printing.ts'
import { PyDuration, PyTimeDelta } from './duration.ts'
import { runTest } from './tests.ts'
import {
  isNumber,
  PyFloat,
  PyFunction,
  PyObject,
  PyTuple,
  setMember,
  TemplateError,
  toFloat,
  toNumber,
  TypeMismatch,
  Undefined,
  UndefinedUse,
  type PyDict,
  type PyValue,
} from './values.ts'

/** A node of the parser. Its classes are not exported, so a node is known by its type. */
export interface Node {
  readonly type: string
  readonly [field: string]: unknown
}

const TEMPLATE_CHARS_MAX = 65_536
const STEPS_MAX = 200_000
const DEPTH_MAX = 200
const OUTPUT_CHARS_MAX = 4_000_000

/** Parses a template. */
export function parseTemplate(template: string): Node {
  if (template.length > TEMPLATE_CHARS_MAX) throw new TemplateError('the template is too long')
  try {
    return asNode(parse(tokenize(normalizeTemplate(template))))
  } catch (error) {
    // The parser throws plain errors, and exhausts the stack on very deep nesting.
    throw new TemplateError(`the template has a syntax error: ${(error as Error).message.slice(0, 200)}`)
  }
}

/** Renders a parsed template. Ends after a bounded number of steps. */
export function render(program: Node, names: ReadonlyMap<string, PyValue>): string {
  return new Evaluation(names).run(program)
}

class Evaluation {
  #scope: Map<string, PyValue>
  #steps = 0
  #depth = 0
  #written = 0

  constructor(names: ReadonlyMap<string, PyValue>) {
    this.#scope = new Map(names)
  }

  run(program: Node): string {
    return this.#writeAll(nodes(program.body))
  }

  #writeAll(body: readonly Node[]): string {
    return body.map((node) => this.#write(node)).join('')
  }

  #write(node: Node): string {
    this.#countStep()
    switch (node.type) {
      case 'If':
        return this.#writeAll(isTrue(this.#evaluate(child(node.test))) ? nodes(node.body) : nodes(node.alternate))
      case 'For':
        return this.#writeLoop(node)
      case 'Set':
        this.#assign(child(node.assignee), this.#valueOfSet(node))
        return ''
      case 'Comment':
        return ''
      case 'FilterStatement':
        return this.#count(print(this.#filter(child(node.filter), this.#writeAll(nodes(node.body)))))
      case 'Macro':
      case 'CallStatement':
      case 'Break':
      case 'Continue':
        throw new TemplateError(`the statement ${node.type} is not supported`)
      default:
        return this.#count(print(this.#evaluate(node)))
    }
  }

  #count(text: string): string {
    this.#written += text.length
    if (this.#written > OUTPUT_CHARS_MAX) throw new TemplateError('the result is too long')
    return text
  }

  #countStep(): void {
    this.#steps++
    if (this.#steps > STEPS_MAX) throw new TemplateError(`the template takes more than ${STEPS_MAX} steps`)
  }

  #valueOfSet(node: Node): PyValue {
    return node.value === null ? this.#writeAll(nodes(node.body)) : this.#evaluate(child(node.value))
  }

  #assign(target: Node, value: PyValue): void {
    if (target.type === 'Identifier') this.#scope.set(text(target.value), value)
    else if (target.type === 'TupleLiteral') this.#unpack(target, value)
    else if (target.type === 'MemberExpression') {
      const owner = this.#evaluate(child(target.object))
      if (!(owner instanceof PyObject)) throw new TemplateError('only attributes of a namespace can be set')
      setMember(owner.attributes, text(child(target.property).value), value)
    } else throw new TemplateError('the target of `set` is not supported')
  }

  #unpack(target: Node, value: PyValue): void {
    const names = nodes(target.value)
    const items = iterate(value)
    if (items.length !== names.length) throw new TemplateError('a value has another number of items than names')
    for (const [index, name] of names.entries()) this.#assign(name, items[index] ?? null)
  }

  #writeLoop(node: Node): string {
    let iterable = child(node.iterable)
    let test: Node | null = null
    if (iterable.type === 'SelectExpression') {
      test = child(iterable.test)
      iterable = child(iterable.lhs)
    }
    const outer = this.#scope
    const items = this.#filterItems(child(node.loopvar), iterate(this.#evaluate(iterable)), test)
    if (items.length === 0) return this.#writeAll(nodes(node.defaultBlock))
    const written: string[] = []
    for (const [index, item] of items.entries()) {
      // Names that the body sets end with the turn, as in Jinja.
      this.#scope = new Map(outer)
      this.#scope.set('loop', createLoop(items, index))
      this.#assign(child(node.loopvar), item)
      written.push(this.#writeAll(nodes(node.body)))
    }
    this.#scope = outer
    return written.join('')
  }

  #filterItems(target: Node, items: readonly PyValue[], test: Node | null): readonly PyValue[] {
    if (test === null) return items
    const outer = this.#scope
    const kept = items.filter((item) => {
      this.#scope = new Map(outer)
      this.#assign(target, item)
      return isTrue(this.#evaluate(test))
    })
    this.#scope = outer
    return kept
  }

  #evaluate(node: Node): PyValue {
    this.#countStep()
    if (++this.#depth > DEPTH_MAX) throw new TemplateError('the template is nested too deeply')
    try {
      return this.#evaluateNode(node)
    } finally {
      this.#depth--
    }
  }

  #evaluateNode(node: Node): PyValue {
    switch (node.type) {
      case 'IntegerLiteral':
        return Number(node.value)
      case 'FloatLiteral':
        return toFloat(Number(node.value))
      case 'StringLiteral':
        return text(node.value)
      case 'ArrayLiteral':
        return nodes(node.value).map((item) => this.#evaluate(item))
      case 'TupleLiteral':
        return new PyTuple(nodes(node.value).map((item) => this.#evaluate(item)))
      case 'ObjectLiteral':
        return this.#evaluateDict(node)
      case 'Identifier':
        return this.#resolve(text(node.value))
      case 'MemberExpression':
        return this.#evaluateMember(node)
      case 'CallExpression':
        return this.#call(node)
      case 'FilterExpression':
        return this.#filter(child(node.filter), this.#evaluate(child(node.operand)))
      case 'TestExpression':
        return this.#test(node)
      case 'UnaryExpression':
        return this.#evaluateUnary(text(child(node.operator).value), child(node.argument))
      case 'Ternary':
        return this.#evaluate(child(isTrue(this.#evaluate(child(node.condition))) ? node.trueExpr : node.falseExpr))
      case 'SelectExpression':
        return isTrue(this.#evaluate(child(node.test)))
          ? this.#evaluate(child(node.lhs))
          : new Undefined('the inline if-expression evaluated to false and no else section was defined.')
      case 'BinaryExpression':
        return this.#evaluateBinary(text(child(node.operator).value), node)
      default:
        throw new TemplateError(`the expression ${node.type} is not supported`)
    }
  }

  #evaluateDict(node: Node): PyDict {
    const dict: PyDict = {}
    for (const [name, value] of node.value as ReadonlyMap<unknown, unknown>)
      setMember(dict, print(this.#evaluate(child(name))), this.#evaluate(child(value)))
    return dict
  }

  #resolve(name: string): PyValue {
    const known = this.#scope.get(name)
    if (known !== undefined) return known
    const constant = CONSTANTS.get(name)
    if (constant !== undefined) return constant
    return new Undefined(`'${name}' is undefined`)
  }

  #evaluateMember(node: Node): PyValue {
    const owner = this.#evaluate(child(node.object))
    const property = child(node.property)
    if (node.computed !== true) return getAttribute(owner, text(property.value))
    if (property.type === 'SliceExpression') return this.#slice(owner, property)
    return getItem(owner, this.#evaluate(property))
  }

  #slice(owner: PyValue, node: Node): PyValue {
    requireDefined(owner)
    const [start, stop, step] = [node.start, node.stop, node.step].map((part) =>
      part === undefined || part === null ? null : this.#evaluate(child(part)),
    )
    const isText = typeof owner === 'string'
    const items = isText
      ? Array.from(owner)
      : owner instanceof PyTuple
        ? owner.items
        : Array.isArray(owner)
          ? owner
          : null
    if (items === null) return new Undefined('a value has no slices')
    const picked = sliceIndexes(items.length, toIndex(start), toIndex(stop), toIndex(step) ?? 1).map(
      (index) => items[index] ?? null,
    )
    if (isText) return picked.join('')
    return owner instanceof PyTuple ? new PyTuple(picked) : picked
  }

  #call(node: Node): PyValue {
    const callee = this.#evaluate(child(node.callee))
    const { positional, keywords } = this.#evaluateArguments(nodes(node.args))
    if (callee instanceof Undefined) throw new UndefinedUse(callee.description)
    if (!(callee instanceof PyFunction)) throw new TypeMismatch('a value is not callable')
    return callee.call(positional, keywords)
  }

  #evaluateArguments(args: readonly Node[]): { positional: PyValue[]; keywords: PyDict } {
    const positional: PyValue[] = []
    const keywords: PyDict = {}
    for (const argument of args) {
      if (argument.type === 'KeywordArgumentExpression')
        setMember(keywords, text(child(argument.key).value), this.#evaluate(child(argument.value)))
      else if (argument.type === 'SpreadExpression')
        positional.push(...iterate(this.#evaluate(child(argument.argument))))
      else positional.push(this.#evaluate(argument))
    }
    return { positional, keywords }
  }

  #filter(filter: Node, value: PyValue): PyValue {
    if (filter.type === 'Identifier') return applyFilter(text(filter.value), value, [], {})
    const { positional, keywords } = this.#evaluateArguments(nodes(filter.args))
    return applyFilter(text(child(filter.callee).value), value, positional, keywords)
  }

  #test(node: Node): boolean {
    const value = this.#evaluate(child(node.operand))
    const test = child(node.test)
    const isCall = test.type === 'CallExpression'
    const name = String(isCall ? child(test.callee).value : test.value)
    const others = isCall ? this.#evaluateArguments(nodes(test.args)).positional : []
    return runTest(name, value, others) !== (node.negate === true)
  }

  #evaluateUnary(operator: string, argument: Node): PyValue {
    const value = this.#evaluate(argument)
    if (operator === 'not') return !isTrue(value)
    requireDefined(value)
    if (value instanceof PyTimeDelta || value instanceof PyDuration) return operator === '-' ? negate(value) : value
    if (!isNumber(value)) throw new TypeMismatch(`\`${operator}\` does not take this type`)
    if (operator === '+') return value
    return typeof value === 'bigint' ? -value : value instanceof PyFloat ? new PyFloat(-value.value) : -toNumber(value)
  }

  #evaluateBinary(operator: string, node: Node): PyValue {
    const left = child(node.left)
    if (operator === 'and' || operator === 'or') {
      const first = this.#evaluate(left)
      return isTrue(first) === (operator === 'and') ? this.#evaluate(child(node.right)) : first
    }
    if (!COMPARISONS.has(operator)) return calculate(operator, this.#evaluate(left), this.#evaluate(child(node.right)))
    return this.#compareChain(node).isTrue
  }

  /** `1 < x < 3` compares `x` twice. */
  #compareChain(node: Node): { readonly isTrue: boolean; readonly last: PyValue } {
    const left = child(node.left)
    const operator = text(child(node.operator).value)
    const isChain = left.type === 'BinaryExpression' && COMPARISONS.has(text(child(left.operator).value))
    const before = isChain ? this.#compareChain(left) : { isTrue: true, last: this.#evaluate(left) }
    if (!before.isTrue) return { isTrue: false, last: null }
    const last = this.#evaluate(child(node.right))
    return { isTrue: holds(operator, before.last, last), last }
  }
}

const CONSTANTS: ReadonlyMap<string, PyValue> = new Map<string, PyValue>([
  ['true', true],
  ['True', true],
  ['false', false],
  ['False', false],
  ['none', null],
  ['None', null],
  ['self', new PyObject({})],
  ['namespace', new PyFunction('namespace', (_positional, keywords) => new PyObject({}, { ...keywords }))],
])

/** Names that every template knows without a context. */
export const CONSTANT_NAMES: readonly string[] = [...CONSTANTS.keys()]

const COMPARISONS = new Set(['==', '!=', '<', '>', '<=', '>=', 'in', 'not in'])

function holds(operator: string, left: PyValue, right: PyValue): boolean {
  switch (operator) {
    case '==':
      return isEqual(left, right)
    case '!=':
      return !isEqual(left, right)
    case '<':
      return compare(left, right) < 0
    case '>':
      return compare(left, right) > 0
    case '<=':
      return compare(left, right) <= 0
    case '>=':
      return compare(left, right) >= 0
    case 'in':
      return contains(right, left)
    default:
      return !contains(right, left)
  }
}

function toIndex(value: PyValue | undefined): number | null {
  if (value === null || value === undefined) return null
  if (typeof value !== 'number' && typeof value !== 'boolean')
    throw new TypeMismatch('an index of a slice is not a number')
  return Number(value)
}

function sliceIndexes(length: number, start: number | null, stop: number | null, step: number): number[] {
  if (step === 0) throw new TemplateError('a slice has a step of zero')
  const clamp = (index: number, low: number, high: number): number =>
    Math.min(Math.max(index < 0 ? index + length : index, low), high)
  const indexes: number[] = []
  if (step > 0) {
    const end = stop === null ? length : clamp(stop, 0, length)
    for (let at = start === null ? 0 : clamp(start, 0, length); at < end; at += step) indexes.push(at)
  } else {
    const end = stop === null ? -1 : clamp(stop, -1, length - 1)
    for (let at = start === null ? length - 1 : clamp(start, -1, length - 1); at > end; at += step) indexes.push(at)
  }
  return indexes
}

function createLoop(items: readonly PyValue[], index: number): PyDict {
  return {
    index: index + 1,
    index0: index,
    revindex: items.length - index,
    revindex0: items.length - index - 1,
    first: index === 0,
    last: index === items.length - 1,
    length: items.length,
  }
}

export function asNode(value: unknown): Node {
  if (typeof value !== 'object' || value === null || typeof (value as { type?: unknown }).type !== 'string')
    throw new TemplateError('the template has an incomplete expression')
  return value as Node
}

export function child(value: unknown): Node {
  // Tokens have a value and no node type of their own.
  return asNode(value)
}

export function nodes(value: unknown): readonly Node[] {
  return Array.isArray(value) ? value.map(asNode) : []
}

function text(value: unknown): string {
  if (typeof value !== 'string') throw new TemplateError('the template has an incomplete expression')
  return value
}
