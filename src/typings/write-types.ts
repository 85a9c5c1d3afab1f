import type { Column, ColumnKind } from '../contract/index.ts'
import { propertyName, JsonSchemaTypeWriter, type JsonSchemaNode } from './json-schema-type-writer.ts'

/** What is known of a database: its declared schema, else the columns that were seen. */
export interface TypedDatabase {
  readonly name: string
  readonly schema: JsonSchemaNode | null
  readonly columns: readonly Column[]
}

export interface GeneratedTypes {
  readonly text: string
  readonly databases: readonly { readonly name: string; readonly type: string; readonly from: 'schema' | 'columns' | 'nothing' }[]
}

/** A module with a type for each database, and `Databases`, which the client takes as its parameter. */
export function writeTypes(databases: readonly TypedDatabase[]): GeneratedTypes {
  const taken = new Set(['Databases', 'Record', 'Array', ...RESERVED_TYPE_NAMES])
  const free = (wanted: string): string => {
    const name = toTypeName(wanted)
    let given = name
    for (let n = 2; taken.has(given); n++) given = `${name}${n}`
    taken.add(given)
    return given
  }
  // All databases first: what they refer to has to step aside, not they.
  const types = databases.map(({ name }) => free(name))
  const parts = databases.map((database, at) => declareDatabaseType(database, types[at]!, free))
  const members = databases.map(({ name }, at) => `  ${propertyName(name)}: ${types[at]!}\n`)
  return {
    text: [HEADER, ...parts.flatMap(({ declarations }) => declarations), `/** Every database, for \`createClient<Databases>(…)\` of tidemark/client. */\nexport interface Databases {\n${members.join('')}}\n`].join('\n'),
    databases: databases.map(({ name }, at) => ({ name, type: types[at]!, from: parts[at]!.from })),
  }
}

const HEADER = '// Made by `tidemark types`: changes to this file are lost when it is made again.\n'

function declareDatabaseType({ name, schema, columns }: TypedDatabase, type: string, free: (wanted: string) => string): { declarations: string[]; from: 'schema' | 'columns' | 'nothing' } {
  const shown = name.replaceAll('*/', '')
  if (schema !== null) {
    const schemaTypes = new JsonSchemaTypeWriter(schema, (wanted) => free(`${type}-${wanted}`))
    const text = schemaTypes.typeOf(schema)
    if (text !== 'unknown' && text !== 'Record<string, unknown>') {
      const isPlain = text.startsWith('{') && !['anyOf', 'oneOf', 'allOf'].some((keyword) => Object.hasOwn(Object(schema) as object, keyword))
      const declared = isPlain ? `export interface ${type} ${text}\n` : `export type ${type} = ${text}\n`
      return { from: 'schema', declarations: [...schemaTypes.declarations, `/** A record of ${shown}, by its schema. */\n${declared}`] }
    }
  }
  if (columns.length > 0) {
    const lines = columns.map((column) => `  ${propertyName(column.name)}?: ${columnType(column.kinds)}\n`)
    return { from: 'columns', declarations: [`/** A record of ${shown}, by what has landed so far: others may come, and any may be absent. */\nexport interface ${type} {\n${lines.join('')}}\n`] }
  }
  return { from: 'nothing', declarations: [`/** A record of ${shown}: nothing is known of it yet. */\nexport type ${type} = Record<string, unknown>\n`] }
}

function columnType(kinds: readonly ColumnKind[]): string {
  const types = [...new Set([...kinds.flatMap((kind) => KIND_TYPES[kind]), 'null'])]
  return types.includes('unknown') ? 'unknown' : types.join(' | ')
}

/** The client gives integers beyond 2^53 as bigint, and a column does not tell how far its integers reach. */
const KIND_TYPES: Record<ColumnKind, readonly string[]> = {
  bigint: ['bigint'], boolean: ['boolean'], integer: ['number', 'bigint'], json: ['unknown'], number: ['number'], string: ['string'],
}

const RESERVED_TYPE_NAMES = ['any', 'bigint', 'boolean', 'never', 'null', 'number', 'object', 'string', 'symbol', 'undefined', 'unknown', 'void']

/** order-lines → OrderLines. */
function toTypeName(name: string): string {
  const parts = name.split(/[^A-Za-z0-9]+/).filter((part) => part !== '')
  const joined = parts.map((part) => part[0]!.toUpperCase() + part.slice(1)).join('') || 'Type'
  return /^\d/.test(joined) ? `_${joined}` : joined
}
