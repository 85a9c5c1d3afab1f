import type { JsonObject, JsonValue } from '../../../contract/index.ts'
import { toObject, type OpenApiDocument } from './document.ts'

export interface ApiParameter {
  readonly name: string
  readonly in: string
  readonly isRequired: boolean
  readonly schema: JsonObject
  /** A default, a constant or the only value of an enumeration. */
  readonly value: string | number | boolean | undefined
}

/** The parameters of a path and of its operation, which replaces those of the same name. */
export function listParameters(
  document: OpenApiDocument,
  owners: readonly JsonObject[],
  place: string,
): ApiParameter[] {
  const found = new Map<string, ApiParameter>()
  for (const { parameters } of owners)
    for (const item of Array.isArray(parameters) ? parameters : []) {
      const parameter = document.resolve(item, place)
      const { name, in: location, required } = parameter
      if (typeof name !== 'string' || typeof location !== 'string') continue
      const schema = document.resolve(parameter.schema, `${place}.${name}`)
      const isRequired = required === true || location === 'path'
      found.set(`${location} ${name}`, {
        name,
        in: location,
        isRequired,
        schema,
        value: readFixedValue(parameter, schema),
      })
    }
  return [...found.values()]
}

function readFixedValue(parameter: JsonObject, schema: JsonObject): ApiParameter['value'] {
  const { enum: choices } = schema
  const only = Array.isArray(choices) && choices.length === 1 ? choices[0] : undefined
  const value = schema.default ?? schema.const ?? only ?? (parameter.required === true ? parameter.example : undefined)
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : undefined
}

/** A name without case and separators: `page[size]`, `page_size` and `pageSize` are the same. */
export function normalizeName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '')
}

/** The schema and the headers of the first successful response in JSON. */
export function findResponse(
  document: OpenApiDocument,
  operation: JsonObject,
  place: string,
): { readonly schema: JsonValue | undefined; readonly headers: readonly string[] } | null {
  const all = toObject(operation.responses)
  const status = Object.keys(all)
    .toSorted()
    .find((name) => /^2(?:\d\d|XX)$/i.test(name))
  const response = document.resolve(all[status ?? 'default'], `${place}.responses`)
  const media = Object.entries(toObject(response.content)).find(([type]) =>
    /^application\/(?:[\w.+-]*\+)?json\b|^\*\/\*$/i.test(type),
  )
  if (media === undefined) return null
  return {
    schema: document.resolve(media[1], place).schema,
    headers: Object.keys(toObject(response.headers)),
  }
}
