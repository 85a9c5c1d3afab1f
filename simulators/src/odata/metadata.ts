import type { Properties } from './query.ts'

export interface EntitySet {
  /** The properties that form the key, in order. */
  readonly key: readonly string[]
  readonly properties: Properties
}

const NAMESPACE = 'Tidemark.Simulated'

export function typeNameOf(set: string): string {
  return `${NAMESPACE}.${set}Type`
}

/** The document at `$metadata`. */
export function renderMetadata(version: 2 | 4, sets: Readonly<Record<string, EntitySet>>): string {
  const types = Object.entries(sets).map(([name, { key, properties }]) => {
    const keys = key.map((property) => `<PropertyRef Name="${property}"/>`).join('')
    const declared = Object.entries(properties).map(
      ([property, type]) =>
        `<Property Name="${property}" Type="${type}"${key.includes(property) ? ' Nullable="false"' : ''}${renderFacets(type)}/>`,
    )
    return `<EntityType Name="${name}Type"><Key>${keys}</Key>${declared.join('')}</EntityType>`
  })
  const container = `<EntityContainer Name="Container"${version === 2 ? ' m:IsDefaultEntityContainer="true"' : ''}>${Object.keys(
    sets,
  )
    .map((name) => `<EntitySet Name="${name}" EntityType="${typeNameOf(name)}"/>`)
    .join('')}</EntityContainer>`
  const [edmxNamespace, edmNamespace, edmxVersion] =
    version === 4
      ? ['http://docs.oasis-open.org/odata/ns/edmx', 'http://docs.oasis-open.org/odata/ns/edm', '4.0']
      : ['http://schemas.microsoft.com/ado/2007/06/edmx', 'http://schemas.microsoft.com/ado/2008/09/edm', '1.0']
  const services =
    version === 4
      ? '<edmx:DataServices>'
      : '<edmx:DataServices m:DataServiceVersion="2.0" xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata">'
  return `<?xml version="1.0" encoding="utf-8"?><edmx:Edmx Version="${edmxVersion}" xmlns:edmx="${edmxNamespace}">${services}<Schema Namespace="${NAMESPACE}" xmlns="${edmNamespace}">${types.join('')}${container}</Schema></edmx:DataServices></edmx:Edmx>`
}

function renderFacets(type: string): string {
  if (type === 'Edm.Decimal') return ' Precision="38" Scale="10"'
  return type === 'Edm.DateTimeOffset' || type === 'Edm.DateTime' ? ' Precision="7"' : ''
}
