/** A JSON Schema of draft 7. */
export interface JsonSchema {
  readonly [keyword: string]: unknown
}

/** An object without unknown fields. A type alias, because an interface is not assignable to `JsonSchema`. */
export type ObjectSchema<Properties = Readonly<Record<string, JsonSchema>>, RequiredName = string> = {
  readonly type: 'object'
  readonly properties: Properties
  readonly additionalProperties: false
  readonly required?: readonly RequiredName[]
}

export function objectSchema<
  const Properties extends Readonly<Record<string, JsonSchema>>,
  const RequiredName extends keyof Properties & string = never,
>(properties: Properties, required: readonly RequiredName[] = []): ObjectSchema<Properties, RequiredName> {
  return { type: 'object', properties, additionalProperties: false, ...(required.length > 0 && { required }) }
}

/** Requires the fields of exactly one of the alternatives. Their types stay optional. */
export function requireOneOf<Schema extends ObjectSchema>(
  schema: Schema,
  ...alternatives: (keyof Schema['properties'] & string)[][]
): Schema {
  return { ...schema, oneOf: alternatives.map((required) => ({ required })) }
}

export interface Condition<Name extends string, Value extends string, Then> {
  readonly if: {
    readonly required: readonly [Name]
    readonly properties: { readonly [Field in Name]: { readonly const: Value } }
  }
  readonly then: Then
}

/** A schema that applies only if the named field has the given value. */
export function whenEquals<Name extends string, Value extends string, const Then extends JsonSchema>(
  name: Name,
  value: Value,
  schema: Then,
): Condition<Name, Value, Then> {
  const properties = { [name]: { const: value } } as { [Field in Name]: { const: Value } }
  // oxlint-disable-next-line unicorn/no-thenable
  return { if: { required: [name], properties }, then: schema }
}

/** A secret in a manifest: its name, never its value. */
export const SECRET_SCHEMA = {
  type: 'string',
  pattern: '^\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}$',
  description: 'a secret: write ${NAME} here, and set NAME in the environment or in .env',
} as const

/** The connection that replaces the credentials of a source. */
export const CONNECTION_SCHEMA = {
  type: 'string',
  minLength: 1,
  description: "the name of the tenant's connection, which replaces the credentials",
} as const

export const TEXT_SCHEMA = { type: 'string', minLength: 1 } as const
export const COUNT_SCHEMA = { type: 'integer', minimum: 1 } as const

/** Not resolved when the manifest is read: the source looks up these secrets when it needs them. */
export const LATE_SECRETS = { 'x-secrets': 'late' } as const

/** For sources that cannot leave out fields: they are removed after reading. */
export const SELECTED_AFTER_READING = {
  type: 'array',
  items: { type: 'string', minLength: 1 },
  minItems: 1,
  uniqueItems: true,
  description: 'The fields to keep, or parts of them such as address.city. All are read. Default: all.',
} as const

/** A stream option that the source sets itself. */
export const SET_BY_CONNECTOR = { not: {}, description: 'set by this connector and cannot be changed' } as const

/**
 * The type of the values that a schema accepts. An unrecognized schema accepts unknown values. `whenEquals` in `allOf`
 * makes a union, so its conditions must cover every value of the field.
 */
export type SchemaValue<Schema> = Schema extends { readonly enum: readonly (infer Value)[] }
  ? Value
  : Schema extends { readonly anyOf: readonly (infer Alternative)[] }
    ? SchemaValue<Alternative>
    : Schema extends { readonly type: infer Type }
      ? TypeValue<Type extends readonly (infer Name)[] ? Name : Type, Schema>
      : unknown

type TypeValue<Type, Schema> = Type extends 'string'
  ? string
  : Type extends 'integer' | 'number'
    ? number
    : Type extends 'boolean'
      ? boolean
      : Type extends 'array'
        ? readonly (Schema extends { readonly items: infer Items } ? SchemaValue<Items> : unknown)[]
        : Type extends 'object'
          ? ObjectValue<Schema>
          : unknown

type ObjectValue<Schema> = Schema extends { readonly properties: infer Properties }
  ? Fields<Properties, RequiredNames<Schema>> & Cases<Fields<Properties, RequiredNames<Schema>>, Schema>
  : Schema extends { readonly additionalProperties: infer Value }
    ? Readonly<Record<string, SchemaValue<Value>>>
    : Readonly<Record<string, unknown>>

type Fields<Properties, RequiredName> = {
  readonly [Name in Extract<keyof Properties, RequiredName>]: SchemaValue<Properties[Name]>
} & { readonly [Name in Exclude<keyof Properties, RequiredName>]?: SchemaValue<Properties[Name]> }

type RequiredNames<Schema> = Schema extends { readonly required?: readonly (infer Name)[] } ? Name : never

type Cases<Base, Schema> = Schema extends { readonly allOf: readonly (infer Case)[] }
  ? Case extends Condition<infer Name, infer Value, infer Then>
    ? { readonly [Field in Name]: Value } & Required<Pick<Base, Extract<keyof Base, RequiredNames<Then>>>>
    : never
  : unknown
