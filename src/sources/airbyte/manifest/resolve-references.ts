import type { JsonObject, JsonValue } from '../../../contract/index.ts'
import { isRecord } from './component.ts'

const NODES_MAX = 2_000_000
const DEPTH_MAX = 200

/** Replaces every `$ref` and `#/…` text by what it points to. Fields beside a `$ref` take precedence. */
export function resolveReferences(manifest: JsonObject): JsonObject {
  return new ReferenceResolver(manifest).resolve(manifest) as JsonObject
}

class ReferenceResolver {
  readonly #manifest: JsonObject
  readonly #open = new Set<string>()
  #nodes = 0
  #depth = 0

  constructor(manifest: JsonObject) {
    this.#manifest = manifest
  }

  resolve(node: JsonValue): JsonValue {
    if (++this.#nodes > NODES_MAX) throw new Error('its references expand to too many components')
    if (++this.#depth > DEPTH_MAX) throw new Error('its components are nested too deeply')
    try {
      return this.#resolveNode(node)
    } finally {
      this.#depth--
    }
  }

  #resolveNode(node: JsonValue): JsonValue {
    if (typeof node === 'string') return node.startsWith('#/') ? this.#follow(node) : node
    if (Array.isArray(node)) return node.map((item) => this.resolve(item))
    if (!isRecord(node)) return node
    const own: JsonObject = {}
    for (const [name, value] of Object.entries(node)) {
      if (name === '$ref' || value === undefined) continue
      // The values of a config are data, not components.
      own[name] = name === 'config' ? value : this.resolve(value)
    }
    if (node.$ref === undefined) return own
    const target = this.resolve(node.$ref)
    return isRecord(target) ? { ...target, ...own } : target
  }

  #follow(reference: string): JsonValue {
    if (this.#open.has(reference)) throw new Error(`the reference ${reference} leads back to itself`)
    this.#open.add(reference)
    const found = this.resolve(this.#find(reference))
    this.#open.delete(reference)
    return found
  }

  /** A key may contain a slash, so the whole rest of the path is tried as a key first. */
  #find(reference: string): JsonValue {
    let path = reference.slice(2)
    let node: JsonValue = this.#manifest
    while (path !== '') {
      const whole: JsonValue | undefined = readMember(node, path)
      if (whole !== undefined) return whole
      const slash = path.indexOf('/')
      const head = slash < 0 ? path : path.slice(0, slash)
      path = slash < 0 ? '' : path.slice(slash + 1)
      const next: JsonValue | undefined = readMember(node, head)
      if (next === undefined) throw new Error(`the reference ${reference} points to nothing`)
      node = next
    }
    return node
  }
}

function readMember(node: JsonValue, name: string): JsonValue | undefined {
  if (Array.isArray(node)) return /^\d+$/.test(name) ? node[Number(name)] : undefined
  return isRecord(node) && Object.hasOwn(node, name) ? node[name] : undefined
}
