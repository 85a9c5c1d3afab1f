import { SyncError } from '../../contract/index.ts'
import { parseXmlTags } from '../kit/xml.ts'

/** The parsed `$metadata` of a service. */
export interface ODataMetadata {
  readonly version: 2 | 4
  readonly entitySets: ReadonlyMap<string, StructuredType>
  /** Resolves a complex type by the name that a property uses. */
  getComplexType(name: string): StructuredType | undefined
}

/** An entity type or a complex type, including properties of its base types. */
export interface StructuredType {
  /** Empty for complex types, and for views without a key. */
  readonly key: readonly string[]
  readonly properties: ReadonlyMap<string, ODataProperty>
}

export interface ODataProperty {
  readonly name: string
  /** `Edm.String`, a type of the service by its full name, or `Collection(…)` of either. */
  readonly type: string
  /** Fractional digits of a second, if declared. */
  readonly precision: number | null
  /** False if the service declares that it cannot filter or sort by the property. */
  readonly isSortable: boolean
}

interface DeclaredType extends StructuredType {
  readonly base: string | undefined
  readonly key: string[]
  readonly properties: Map<string, ODataProperty>
}

/** Parses `$metadata`: the properties and keys of entity and complex types, and the type of each set. */
export function parseMetadata(xml: string): ODataMetadata {
  const types = new Map<string, DeclaredType>()
  const sets = new Map<string, string>()
  /** Keyed by alias or by namespace. */
  const namespaces = new Map<string, string>()
  const definitions = new Map<string, string>()
  let version: string | undefined
  let namespace = ''
  let current: DeclaredType | null = null
  let isComplete = false
  for (const tag of parseXmlTags(xml)) {
    const { kind } = tag
    const name = toLocalName(tag.name)
    const attributes = new Map(tag.attributes.map(([attribute, value]) => [toLocalName(attribute), value] as const))
    const named = attributes.get('Name') ?? ''
    if (kind === 'close') {
      if (name === 'EntityType' || name === 'ComplexType') current = null
      if (name === 'Edmx') isComplete = true
    } else if (name === 'Edmx') version ??= attributes.get('Version')
    else if (name === 'Schema') {
      namespace = attributes.get('Namespace') ?? ''
      namespaces.set(attributes.get('Alias') ?? namespace, namespace)
    } else if (name === 'EntityType' || name === 'ComplexType') {
      const type: DeclaredType = { base: attributes.get('BaseType'), key: [], properties: new Map() }
      types.set(`${namespace}.${named}`, type)
      current = kind === 'open' ? type : null
    } else if (name === 'TypeDefinition')
      definitions.set(`${namespace}.${named}`, attributes.get('UnderlyingType') ?? '')
    else if (name === 'PropertyRef') current?.key.push(named)
    else if (name === 'Property' && current !== null) current.properties.set(named, parseProperty(named, attributes))
    else if (name === 'EntitySet') sets.set(named, attributes.get('EntityType') ?? '')
  }
  // Truncated metadata would look like a service without some of its sets.
  if (version !== undefined && !isComplete)
    throw new SyncError('SOURCE_INVALID', 'The `$metadata` document is truncated.')
  if (version !== '4.0' && version !== '4.01' && version !== '1.0')
    throw new SyncError('SOURCE_INVALID', 'The `$metadata` document is not OData version 4 or 2. Check `url`.')

  const fullName = (type: string): string => {
    const dot = type.lastIndexOf('.')
    return `${namespaces.get(type.slice(0, dot)) ?? type.slice(0, dot)}.${type.slice(dot + 1)}`
  }
  const resolveType = (type: string, depth = 0): StructuredType | undefined => {
    const own = types.get(fullName(type))
    const base = own?.base === undefined || depth === BASE_TYPE_DEPTH_MAX ? undefined : resolveType(own.base, depth + 1)
    if (own === undefined) return undefined
    const declared = [...own.properties.values()].map((property) => ({
      ...property,
      type: definitions.get(fullName(property.type)) ?? property.type,
    }))
    const properties = new Map([
      ...(base?.properties ?? []),
      ...declared.map((property) => [property.name, property] as const),
    ])
    return { key: own.key.length > 0 ? own.key : (base?.key ?? []), properties }
  }
  return {
    version: version === '1.0' ? 2 : 4,
    entitySets: new Map(
      [...sets].map(([name, type]) => [name, resolveType(type) ?? { key: [], properties: new Map() }]),
    ),
    getComplexType: (name) => resolveType(name),
  }
}

const BASE_TYPE_DEPTH_MAX = 32

function parseProperty(name: string, attributes: ReadonlyMap<string, string>): ODataProperty {
  const precision = Number(attributes.get('Precision') ?? Number.NaN)
  return {
    name,
    type: attributes.get('Type') ?? '',
    precision: Number.isInteger(precision) ? precision : null,
    // SAP declares these in version 2.
    isSortable: attributes.get('filterable') !== 'false' && attributes.get('sortable') !== 'false',
  }
}

/** Without the prefix, which every service chooses itself. */
function toLocalName(name: string): string {
  return name.slice(name.indexOf(':') + 1)
}
