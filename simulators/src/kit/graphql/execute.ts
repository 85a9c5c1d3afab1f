import type {
  GraphqlDocument,
  FieldNode,
  GraphqlLocation,
  GraphqlOperation,
  SelectionNode,
  ValueNode,
} from './document.ts'
import { FieldError, parseTypeName, type Args, type Parent, type Schema } from './schema.ts'

export interface GraphqlError {
  readonly message: string
  readonly type?: string
  readonly path?: ReadonlyArray<string | number>
  readonly locations?: readonly GraphqlLocation[]
  readonly extensions?: Readonly<Record<string, unknown>>
}

export interface GraphqlResult {
  readonly data: unknown
  readonly errors: readonly GraphqlError[]
}

/** One document, one operation of it, and its variables: the input of validation, costing and execution. */
export class Execution<C> {
  readonly #schema: Schema<C>
  readonly #document: GraphqlDocument
  readonly #operation: GraphqlOperation
  readonly #variables: Readonly<Record<string, unknown>>
  readonly #errors: GraphqlError[] = []

  constructor(
    schema: Schema<C>,
    document: GraphqlDocument,
    operation: GraphqlOperation,
    variables: Readonly<Record<string, unknown>>,
  ) {
    this.#schema = schema
    this.#document = document
    this.#operation = operation
    this.#variables = variables
  }

  /** Lists every field the schema does not know, and every argument it does not accept. */
  validate(): GraphqlError[] {
    const errors: GraphqlError[] = []
    this.walk((parentType, node, path) => {
      const field = this.#schema[parentType]?.fields[node.name]
      const at = { path: [this.#operationLabel(), ...path], locations: [node.location] }
      if (node.name === '__typename') return
      if (field === undefined) {
        errors.push({
          ...at,
          message: `Field '${node.name}' doesn't exist on type '${parentType}'`,
          extensions: { code: 'undefinedField', typeName: parentType, fieldName: node.name },
        })
        return
      }
      for (const name of node.args.keys()) {
        if (field.args?.[name] === undefined)
          errors.push({
            ...at,
            message: `Field '${node.name}' doesn't accept argument '${name}'`,
            extensions: { code: 'argumentNotAccepted', name: node.name, typeName: 'Field', argumentName: name },
          })
      }
      const missing = Object.entries(field.args ?? {}).filter(
        ([name, type]) => type.endsWith('!') && !node.args.has(name),
      )
      if (missing.length > 0)
        errors.push({
          ...at,
          message: `Field '${node.name}' is missing required arguments: ${missing.map(([name]) => name).join(', ')}`,
          extensions: { code: 'missingRequiredArguments', className: 'Field', name: node.name },
        })
      const named = parseTypeName(field.type)
      if (this.#schema[named] !== undefined && node.selections.length === 0)
        errors.push({
          ...at,
          message: `Field must have selections (field '${node.name}' returns ${named} but has no selections. Did you mean '${node.name} { ... }'?)`,
          extensions: { code: 'selectionMismatch', nodeName: `field '${node.name}'`, typeName: named },
        })
    })
    return errors
  }

  /** Visits every field once, parents before children, independently of the data. */
  walk(
    visit: (parentType: string, node: FieldNode, path: readonly string[], parents: readonly FieldNode[]) => void,
  ): void {
    const into = (
      type: string,
      selections: readonly SelectionNode[],
      path: readonly string[],
      parents: readonly FieldNode[],
    ): void => {
      for (const selection of selections) {
        if (selection.kind === 'field') {
          const here = [...path, selection.key]
          visit(type, selection, here, parents)
          const field = this.#schema[type]?.fields[selection.name]
          if (field !== undefined) into(parseTypeName(field.type), selection.selections, here, [...parents, selection])
        } else if (selection.kind === 'inline') into(selection.on ?? type, selection.selections, path, parents)
        else {
          const fragment = this.#document.fragments.get(selection.name)
          if (fragment !== undefined) into(fragment.on, fragment.selections, path, parents)
        }
      }
    }
    into('Query', this.#operation.selections, [], [])
  }

  argumentsOf(node: FieldNode): Args {
    const args: Record<string, unknown> = {}
    for (const [name, value] of node.args) {
      const given = this.#value(value)
      if (given !== undefined) args[name] = given
    }
    return args
  }

  run(context: C): GraphqlResult {
    const data = this.#object('Query', {}, this.#operation.selections, [], context)
    return { data: data ?? null, errors: this.#errors }
  }

  /** undefined when a non-nullable field is null: the null then propagates to the parent. */
  #object(
    type: string,
    parent: Parent,
    selections: readonly SelectionNode[],
    path: ReadonlyArray<string | number>,
    context: C,
  ): Record<string, unknown> | undefined {
    const shown: Record<string, unknown> = {}
    for (const node of this.#collect(type, selections)) {
      if (node.name === '__typename') {
        shown[node.key] = type
        continue
      }
      const field = this.#schema[type]?.fields[node.name]
      if (field === undefined) continue
      const here = [...path, node.key]
      let value: unknown
      try {
        const resolved =
          field.resolve === undefined ? parent[node.name] : field.resolve(parent, this.argumentsOf(node), context)
        value = this.#complete(field.type, resolved, node, here, context)
      } catch (error) {
        if (!(error instanceof FieldError)) throw error
        this.#errors.push({
          ...(error.type === undefined ? {} : { type: error.type }),
          path: here,
          locations: [node.location],
          message: error.message,
        })
        value = null
      }
      if (value === null && field.type.endsWith('!')) return undefined
      shown[node.key] = Object.hasOwn(shown, node.key) ? mergeSelections(shown[node.key], value) : value
    }
    return shown
  }

  #complete(type: string, value: unknown, node: FieldNode, path: ReadonlyArray<string | number>, context: C): unknown {
    if (value === null || value === undefined) return null
    const bare = type.endsWith('!') ? type.slice(0, -1) : type
    if (bare.startsWith('[')) {
      const inner = bare.slice(1, -1)
      const items: unknown[] = []
      for (const [at, item] of (value as unknown[]).entries()) {
        let shown: unknown
        if (item instanceof FieldError) {
          this.#errors.push({
            ...(item.type === undefined ? {} : { type: item.type }),
            path: [...path, at],
            locations: [node.location],
            message: item.message,
          })
          shown = null
        } else shown = this.#complete(inner, item, node, [...path, at], context)
        if (shown === null && inner.endsWith('!')) return null
        items.push(shown)
      }
      return items
    }
    const declared = this.#schema[bare]
    if (declared === undefined) return value
    const concrete = declared.kind === 'interface' ? String((value as Parent)['__typename']) : bare
    return this.#object(concrete, value as Parent, node.selections, path, context) ?? null
  }

  #collect(type: string, selections: readonly SelectionNode[]): FieldNode[] {
    return selections.flatMap((selection) => {
      if (!this.#included(selection)) return []
      if (selection.kind === 'field') return [selection]
      const fragment = selection.kind === 'inline' ? selection : this.#document.fragments.get(selection.name)
      if (fragment === undefined) return []
      const applies =
        fragment.on === undefined ||
        fragment.on === type ||
        this.#schema[type]?.implements?.includes(fragment.on) === true
      return applies ? this.#collect(type, fragment.selections) : []
    })
  }

  #included(selection: SelectionNode): boolean {
    return selection.directives.every((directive) => {
      const condition = directive.args.get('if')
      const given = condition === undefined ? true : this.#value(condition) === true
      return directive.name === 'skip' ? !given : directive.name === 'include' ? given : true
    })
  }

  #value(node: ValueNode): unknown {
    switch (node.kind) {
      case 'constant':
        return node.value
      case 'list':
        return node.items.map((item) => this.#value(item) ?? null)
      case 'object':
        return Object.fromEntries(node.entries.map(([name, value]) => [name, this.#value(value)]))
      case 'variable': {
        if (Object.hasOwn(this.#variables, node.name)) return this.#variables[node.name]
        const fallback = this.#operation.defaults.get(node.name)
        return fallback === undefined ? undefined : this.#value(fallback)
      }
    }
  }

  #operationLabel(): string {
    return this.#operation.name === undefined ? this.#operation.kind : `${this.#operation.kind} ${this.#operation.name}`
  }
}

/** The same key selected twice, as fragments do: their sub-selections are merged. */
function mergeSelections(a: unknown, b: unknown): unknown {
  if (Array.isArray(a) && Array.isArray(b)) return a.map((item, at) => mergeSelections(item, b[at]))
  if (typeof a === 'object' && a !== null && typeof b === 'object' && b !== null) {
    const joined: Record<string, unknown> = { ...(a as Record<string, unknown>) }
    for (const [key, value] of Object.entries(b))
      joined[key] = Object.hasOwn(joined, key) ? mergeSelections(joined[key], value) : value
    return joined
  }
  return b
}
