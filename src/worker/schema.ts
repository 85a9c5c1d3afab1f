import { createRequire } from 'node:module'
import { SyncError, type JsonObject, type JsonValue } from '../contract/index.ts'
import { describeValue } from '../config/names.ts'

/** The interface of zod, valibot, arktype and others; see standardschema.dev. */
export interface StandardSchema {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => StandardResult | Promise<StandardResult>
  }
}

/** Draft 7 unless `$schema` names 2019-09 or 2020-12. `format` is an annotation and is not validated. */
export interface JsonSchema {
  readonly [keyword: string]: unknown
}

/** The schema of the records of a database. */
export type Schema = StandardSchema | JsonSchema

export interface CompiledSchema {
  readonly kind: 'standard' | 'json'
  readonly validate: (record: JsonObject) => string | null | Promise<string | null>
}

interface StandardResult {
  readonly value?: unknown
  readonly issues?: readonly StandardIssue[] | undefined
}

interface StandardIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

type RecordCheck = (record: JsonObject) => string | null | Promise<string | null>

const ISSUES_SHOWN = 3
const MESSAGE_MAX = 500

/** Throws SCHEMA_INVALID at declaration, before the first record is read. */
export function compileSchema(database: string, schema: unknown): CompiledSchema {
  if (isStandardSchema(schema)) return { kind: 'standard', validate: withJsonFallback(createStandardCheck(schema)) }
  if (typeof schema === 'object' && schema !== null && !Array.isArray(schema)) {
    return { kind: 'json', validate: withJsonFallback(createJsonCheck(database, schema as JsonSchema)) }
  }
  throw new SyncError('SCHEMA_INVALID', `The schema of database "${database}" is ${describeValue(schema)}.`)
}

/** Converts to JSON Schema if the library supports it, for the input type of a record. */
export function jsonSchemaOf(schema: Schema): JsonSchema | null {
  if (!isStandardSchema(schema)) return schema
  const { jsonSchema } = schema['~standard'] as {
    readonly jsonSchema?: { input(options: { target: string }): JsonSchema }
  }
  // Methods of arktype and of older zod versions.
  const { toJsonSchema, toJSONSchema } = schema as {
    readonly toJsonSchema?: () => JsonSchema
    readonly toJSONSchema?: () => JsonSchema
  }
  try {
    return (
      jsonSchema?.input({ target: 'draft-2020-12' }) ?? toJsonSchema?.call(schema) ?? toJSONSchema?.call(schema) ?? null
    )
  } catch {
    // The schema has a type that JSON Schema cannot express.
    return null
  }
}

/**
 * Records may contain values that JSON Schema does not know: bigint integers, and undefined fields for "absent". They
 * are converted only if the record fails first, because the conversion copies it.
 */
function withJsonFallback(check: RecordCheck): RecordCheck {
  function again(record: JsonObject, issue: string): string | null | Promise<string | null> {
    return needsJsonConversion(record) ? check(toJsonRecord(record) as JsonObject) : issue
  }
  return (record) => {
    const issue = check(record)
    if (issue === null) return null
    return typeof issue === 'string'
      ? again(record, issue)
      : issue.then((settled) => (settled === null ? null : again(record, settled)))
  }
}

// ── Standard Schema ──────────────────────────────────────────────────────────────────────────────────────────────────

function isStandardSchema(schema: unknown): schema is StandardSchema {
  if ((typeof schema !== 'object' && typeof schema !== 'function') || schema === null) return false
  const standard = (schema as Partial<StandardSchema>)['~standard']
  return typeof standard === 'object' && standard !== null && typeof standard.validate === 'function'
}

function createStandardCheck(schema: StandardSchema): RecordCheck {
  return (record) => {
    try {
      const result = schema['~standard'].validate(record)
      return result instanceof Promise ? result.then(formatIssues, describeFailure) : formatIssues(result)
    } catch (error) {
      return describeFailure(error)
    }
  }
}

function formatIssues(result: StandardResult): string | null {
  const issues = result.issues
  if (issues === undefined) return null
  const said = issues.slice(0, ISSUES_SHOWN).map((issue) => {
    const path = (issue.path ?? []).map((part) => String(typeof part === 'object' ? part.key : part)).join('.')
    return path === '' ? issue.message : `${path}: ${issue.message}`
  })
  if (issues.length > ISSUES_SHOWN) said.push(`and ${issues.length - ISSUES_SHOWN} more`)
  return said.join('; ').slice(0, MESSAGE_MAX) || 'the schema rejected it'
}

/** If the schema throws, the record is quarantined like an invalid one, and the others still land. */
function describeFailure(error: unknown): string {
  return `the schema itself failed: ${error instanceof Error ? error.message : String(error)}`.slice(0, MESSAGE_MAX)
}

// ── JSON Schema ──────────────────────────────────────────────────────────────────────────────────────────────────────

const JSON_SCHEMA_KEYWORDS = new Set([
  '$schema',
  '$id',
  '$ref',
  '$defs',
  'definitions',
  'type',
  'properties',
  'required',
  'additionalProperties',
  'patternProperties',
  'propertyNames',
  'unevaluatedProperties',
  'minProperties',
  'maxProperties',
  'dependentRequired',
  'dependentSchemas',
  'dependencies',
  'enum',
  'const',
  'allOf',
  'anyOf',
  'oneOf',
  'not',
  'if',
])

function createJsonCheck(database: string, schema: JsonSchema): RecordCheck {
  const subject = `The schema of database "${database}"`
  if (!Object.keys(schema).some((keyword) => JSON_SCHEMA_KEYWORDS.has(keyword))) {
    throw new SyncError('SCHEMA_INVALID', `${subject} has none of JSON Schema's keywords, so it would accept anything.`)
  }
  if (schema['type'] !== undefined && ![schema['type']].flat().includes('object')) {
    throw new SyncError(
      'SCHEMA_INVALID',
      `${subject} describes ${describeValue(schema['type'])}, but a record is an object.`,
    )
  }
  // Async validation returns promises, which are truthy, so every record would pass.
  if (schema['$async'] === true)
    throw new SyncError('SCHEMA_INVALID', `${subject} uses $async, which is not JSON Schema.`)
  let validate: ReturnType<Ajv['compile']>
  try {
    const Dialect = loadAjv(schema['$schema'])
    checkSchema(Dialect, schema)
    // An instance of its own: two schemas may have the same $id.
    validate = new Dialect({ ...AJV_OPTIONS, validateSchema: false }).compile(schema)
  } catch (cause) {
    throw new SyncError(
      'SCHEMA_INVALID',
      `${subject} is not valid: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    )
  }
  return (record) => {
    if (validate(record)) return null
    const [error] = validate.errors ?? []
    const path = (error?.instancePath ?? '').slice(1).replaceAll('/', '.')
    const named = error?.params?.['additionalProperty'] as string | undefined
    const said = `${error?.message ?? 'the schema rejected it'}${named === undefined ? '' : ` (${describeValue(named)})`}`
    return (path === '' ? said : `${path}: ${said}`).slice(0, MESSAGE_MAX)
  }
}

type AjvClass = typeof import('ajv').Ajv
type Ajv = InstanceType<AjvClass>

const AJV_OPTIONS = { strict: false, logger: false, allowUnionTypes: true } as const
/** Compiling the schema of a dialect takes longer than compiling most schemas, so one instance per dialect keeps it. */
const schemaCheckers = new Map<AjvClass, Ajv>()

/** Throws unless the schema conforms to its dialect. */
function checkSchema(Dialect: AjvClass, schema: JsonSchema): void {
  let checker = schemaCheckers.get(Dialect)
  if (checker === undefined) schemaCheckers.set(Dialect, (checker = new Dialect(AJV_OPTIONS)))
  void checker.validateSchema(schema, true)
}

/** Imported with the first JSON Schema, so that other workers start without it. */
function loadAjv(dialect: unknown): AjvClass {
  const load = createRequire(import.meta.url)
  if (typeof dialect === 'string' && dialect.includes('2020-12')) return load('ajv/dist/2020') as AjvClass
  if (typeof dialect === 'string' && dialect.includes('2019-09')) return load('ajv/dist/2019') as AjvClass
  return load('ajv') as AjvClass
}

// ── Conversion of records for JSON Schema ────────────────────────────────────────────────────────────────────────────────

function needsJsonConversion(value: JsonValue | undefined): boolean {
  if (value === undefined || typeof value === 'bigint') return true
  if (typeof value !== 'object' || value === null) return false
  return (Array.isArray(value) ? value : Object.values(value)).some(needsJsonConversion)
}

function toJsonRecord(value: JsonValue): JsonValue {
  if (typeof value === 'bigint') return Number(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(toJsonRecord)
  const members = Object.entries(value).filter((entry): entry is [string, JsonValue] => entry[1] !== undefined)
  return Object.fromEntries(members.map(([name, member]) => [name, toJsonRecord(member)]))
}
