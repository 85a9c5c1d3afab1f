/** A JSON Schema of any draft; only keywords that describe shapes are used. */
export type JsonSchemaNode = boolean | { readonly [keyword: string]: unknown }

const DEPTH_MAX = 40

/** Renders schemas as TypeScript types. Each `$ref` target becomes a named type, so that recursion ends. */
export class JsonSchemaTypeWriter {
  readonly #root: JsonSchemaNode
  readonly #reserveName: (wanted: string) => string
  /** Maps a $ref to the name of its type. */
  readonly #nameByRef = new Map<string, string>()
  readonly #declarations: string[] = []

  /** `name` returns an unused name similar to the requested one. */
  constructor(root: JsonSchemaNode, name: (wanted: string) => string) {
    this.#root = root
    this.#reserveName = name
  }

  /** The declarations of referenced types. */
  get declarations(): readonly string[] {
    return this.#declarations
  }

  typeOf(schema: unknown, indent = '', depth = 0): string {
    if (typeof schema !== 'object' || schema === null) return schema === false ? 'never' : 'unknown'
    if (depth > DEPTH_MAX) return 'unknown'
    const node = schema as Record<string, unknown>
    if (typeof node['$ref'] === 'string') return this.#referenceType(node['$ref'])
    if ('const' in node) return literalType(node['const'])
    if (Array.isArray(node['enum'])) return unionType(node['enum'].map(literalType))
    const parts = [this.#typeOfKinds(node, indent, depth)]
    for (const keyword of ['anyOf', 'oneOf']) {
      if (Array.isArray(node[keyword]))
        parts.push(unionType(node[keyword].map((one) => this.typeOf(one, indent, depth + 1))))
    }
    if (Array.isArray(node['allOf'])) parts.push(...node['allOf'].map((one) => this.typeOf(one, indent, depth + 1)))
    const said = [...new Set(parts.filter((part) => part !== 'unknown'))]
    const [first, ...others] = said
    return first === undefined
      ? 'unknown'
      : others.length === 0
        ? first
        : said.map((part) => (part.includes(' | ') ? `(${part})` : part)).join(' & ')
  }

  #typeOfKinds(node: Record<string, unknown>, indent: string, depth: number): string {
    const kinds = node['type'] === undefined ? impliedKinds(node) : [node['type']].flat()
    return kinds.length === 0 ? 'unknown' : unionType(kinds.map((kind) => this.#typeOfKind(kind, node, indent, depth)))
  }

  #typeOfKind(kind: unknown, node: Record<string, unknown>, indent: string, depth: number): string {
    switch (kind) {
      case 'object':
        return this.#objectType(node, indent, depth)
      case 'array':
        return this.#arrayType(node, indent, depth)
      case 'string':
      case 'boolean':
      case 'null':
      case 'number':
        return kind
      case 'integer':
        return 'number'
      default:
        return 'unknown'
    }
  }

  #objectType(node: Record<string, unknown>, indent: string, depth: number): string {
    const properties = Object.entries((node['properties'] ?? {}) as Record<string, unknown>)
    const required = new Set(Array.isArray(node['required']) ? (node['required'] as unknown[]) : [])
    const others = node['additionalProperties']
    const open = typeof others === 'object' && others !== null ? this.typeOf(others, indent, depth + 1) : 'unknown'
    if (properties.length === 0) return `Record<string, ${open}>`
    const inner = `${indent}  `
    const lines = properties.map(
      ([name, schema]) =>
        `${docComment(schema, inner)}${inner}${propertyName(name)}${required.has(name) ? '' : '?'}: ${this.typeOf(schema, inner, depth + 1)}\n`,
    )
    // An index signature must cover all named properties, so it is less precise than the schema.
    const signature = typeof others === 'object' && others !== null ? `${inner}[name: string]: unknown\n` : ''
    return `{\n${lines.join('')}${signature}${indent}}`
  }

  #arrayType(node: Record<string, unknown>, indent: string, depth: number): string {
    const tuple = Array.isArray(node['prefixItems'])
      ? node['prefixItems']
      : Array.isArray(node['items'])
        ? node['items']
        : null
    const rest =
      tuple !== null && !Array.isArray(node['items'])
        ? node['items']
        : tuple === null
          ? node['items']
          : node['additionalItems']
    const item = this.typeOf(rest ?? true, indent, depth + 1)
    if (tuple === null) return `Array<${item}>`
    const fixed = tuple.map((one) => this.typeOf(one, indent, depth + 1))
    const [least, more] = [
      typeof node['minItems'] === 'number' ? node['minItems'] : 0,
      rest === false ? [] : [`...Array<${item}>`],
    ]
    return `[${[...fixed.map((type, at) => (at < least ? type : `${/^[\w"]+$/.test(type) ? type : `(${type})`}?`)), ...more].join(', ')}]`
  }

  #referenceType(ref: string): string {
    const known = this.#nameByRef.get(ref)
    if (known !== undefined) return known
    const target = ref.startsWith('#') ? resolvePointer(this.#root, ref.slice(1)) : undefined
    if (target === undefined) return 'unknown'
    const name = this.#reserveName(ref.split('/').at(-1) || 'Root')
    // Registered before its content is rendered, because it may refer to itself.
    this.#nameByRef.set(ref, name)
    const type = this.typeOf(target)
    this.#declarations.push(`${docComment(target, '')}export type ${name} = ${type}\n`)
    return name
  }
}

/** A property name, quoted if it is not an identifier. */
export function propertyName(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) && name !== '__proto__' ? name : JSON.stringify(name)
}

function impliedKinds(node: Record<string, unknown>): string[] {
  if ('properties' in node || 'required' in node || typeof node['additionalProperties'] === 'object') return ['object']
  return 'items' in node || 'prefixItems' in node ? ['array'] : []
}

function unionType(types: readonly string[]): string {
  const all = [...new Set(types)]
  if (all.includes('unknown')) return 'unknown'
  const some = all.filter((type) => type !== 'never')
  return some.length === 0 ? 'never' : some.map((type) => (type.includes(' & ') ? `(${type})` : type)).join(' | ')
}

function literalType(value: unknown): string {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'number') return String(value)
  return 'unknown'
}

function docComment(schema: unknown, indent: string): string {
  const text = (Object(schema) as { description?: unknown }).description
  if (typeof text !== 'string' || text.trim() === '') return ''
  return `${indent}/** ${text.trim().replaceAll(/\s+/g, ' ').replaceAll('*/', '*\\/')} */\n`
}

function resolvePointer(root: unknown, pointer: string): unknown {
  let at = root
  for (const part of pointer.split('/').slice(1)) {
    const name = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined
    at = (at as Record<string, unknown>)[name]
  }
  return at
}
