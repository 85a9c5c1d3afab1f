import type { JsonValue } from '../../../contract/index.ts'
import { asNode, CONSTANT_NAMES, parseTemplate, render, type Node } from './evaluate.ts'
import { readLiteral } from './literals.ts'
import { createMacros, MACRO_NAMES, type Ambient } from './macros.ts'
import { print } from './printing.ts'
import { TemplateError, TypeMismatch, UndefinedUse, type PyValue } from './values.ts'

/** The values that a template sees by name: `config`, `parameters`, `record`, `stream_slice` and so on. */
export type Names = Readonly<Record<string, PyValue | undefined>>

/** Slices have two more names. */
const ALIASES = ['stream_interval', 'stream_partition']

const PARSED_MAX = 10_000

/** Evaluates templates as the interpolation of Airbyte's framework does, with the time of the context. */
export class Interpolation {
  readonly #globals: ReadonlyMap<string, PyValue>

  constructor(ambient: Ambient) {
    this.#globals = createMacros(ambient)
  }

  /** The value of a text: rendered, then read as a literal of Python. `null` as the default means no value. */
  evaluate(
    template: string,
    names: Names,
    fallback: string | null = template,
    isValid: (value: PyValue) => boolean = () => true,
  ): PyValue {
    const rendered = this.#renderOrNull(template, names)
    if (rendered !== null && rendered !== '') return readValue(rendered, isValid)
    if (fallback === null) return null
    return readValue(this.#render(fallback, names), isValid)
  }

  /** The value of a text that stays a text, for names of parameters. */
  evaluateText(template: string, names: Names): string | null {
    const rendered = this.#renderOrNull(template, names)
    if (rendered === null || rendered === '') return null
    const literal = readLiteral(rendered)
    return typeof literal?.value === 'string' ? literal.value : rendered
  }

  /** Whether the value of a condition counts as true. */
  test(condition: string | boolean, names: Names): boolean {
    if (typeof condition === 'boolean') return condition
    return !isFalse(this.evaluate(condition, names, 'False'))
  }

  #renderOrNull(template: string, names: Names): string | null {
    try {
      return this.#render(template, names)
    } catch (error) {
      if (error instanceof UndefinedUse) return null
      throw error
    }
  }

  #render(template: string, names: Names): string {
    if (template.includes('stream_state'))
      throw new TemplateError('`stream_state` is not available; use `stream_interval` instead')
    if (!isTemplate(template)) return trimNewline(template)
    const { program, unresolved } = parseOnce(template)
    const scope = new Map(this.#globals)
    for (const [name, value] of Object.entries(names)) if (value !== undefined) scope.set(name, value)
    const slice = scope.get('stream_slice')
    if (slice !== undefined) for (const alias of ALIASES) scope.set(alias, slice)
    const missing = unresolved.find((name) => !scope.has(name))
    if (missing !== undefined) throw new TemplateError(`the name \`${missing}\` is not available here`)
    try {
      return render(program, scope)
    } catch (error) {
      // Python raises TypeError, and the framework takes the template as a plain text.
      if (error instanceof TypeMismatch) return template
      throw error
    }
  }
}

export function isTemplate(text: string): boolean {
  return text.includes('{{') || text.includes('{%') || text.includes('{#')
}

/** Jinja drops one newline at the end of a template. */
function trimNewline(text: string): string {
  return text.replace(/(?:\r\n|\n|\r)$/, '')
}

/** A literal of a type that is not asked for stays a text. */
function readValue(rendered: string, isValid: (value: PyValue) => boolean): PyValue {
  const literal = readLiteral(rendered)
  return literal === null || !isValid(literal.value) ? rendered : literal.value
}

const FALSE_TEXTS = new Set(['False', 'false', '{}', '[]', '()', '', '0', '0.0'])

function isFalse(value: PyValue): boolean {
  if (value === null || value === false || value === 0) return true
  if (typeof value === 'string') return FALSE_TEXTS.has(value)
  if (typeof value === 'object') return ['{}', '[]', '()', '0.0'].includes(print(value))
  return false
}

interface ParsedTemplate {
  readonly program: Node
  /** Names that the template reads and does not set. */
  readonly unresolved: readonly string[]
}

const parsed = new Map<string, ParsedTemplate>()

function parseOnce(template: string): ParsedTemplate {
  const known = parsed.get(template)
  if (known !== undefined) return known
  const program = parseTemplate(template)
  const result = { program, unresolved: listUnresolved(program) }
  if (parsed.size < PARSED_MAX) parsed.set(template, result)
  return result
}

const ALWAYS_KNOWN = new Set([...CONSTANT_NAMES, ...MACRO_NAMES, 'loop'])

function listUnresolved(program: Node): string[] {
  const read = new Set<string>()
  const written = new Set<string>()
  visit(program, (node) => {
    if (node.type === 'Set') visit(asNode(node.assignee), (target) => addName(target, written))
    if (node.type === 'For') visit(asNode(node.loopvar), (target) => addName(target, written))
    addName(node, read)
  })
  return [...read].filter((name) => !written.has(name) && !ALWAYS_KNOWN.has(name))
}

function addName(node: Node, names: Set<string>): void {
  if (node.type === 'Identifier' && typeof node.value === 'string') names.add(node.value)
}

/** Visits the expressions of a template, but not the names of members, filters, tests and keywords. */
export function visit(node: Node, onNode: (node: Node) => void): void {
  onNode(node)
  for (const [field, value] of Object.entries(node)) {
    if (field === 'operator' || isNameField(node, field)) {
      if (field === 'filter' || field === 'test') visitArguments(value, onNode)
      continue
    }
    visitValue(value, onNode)
  }
}

function isNameField(node: Node, field: string): boolean {
  if (node.type === 'MemberExpression') return field === 'property' && node.computed !== true
  if (node.type === 'FilterExpression' || node.type === 'FilterStatement') return field === 'filter'
  if (node.type === 'TestExpression') return field === 'test'
  return node.type === 'KeywordArgumentExpression' && field === 'key'
}

function visitArguments(value: unknown, onNode: (node: Node) => void): void {
  const { args } = asNode(value)
  visitValue(args, onNode)
}

function visitValue(value: unknown, onNode: (node: Node) => void): void {
  if (Array.isArray(value)) for (const item of value) visitValue(item, onNode)
  else if (value instanceof Map)
    for (const [name, member] of value) {
      visitValue(name, onNode)
      visitValue(member, onNode)
    }
  else if (typeof value === 'object' && value !== null && 'type' in value) visit(asNode(value), onNode)
}

/** A value of JSON is a value of Python as it is; absent members are left out. */
export function toPython(value: JsonValue | undefined): PyValue {
  return (value ?? null) as PyValue
}
