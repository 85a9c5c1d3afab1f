import { Ajv, type ValidateFunction } from 'ajv'
import type { JsonObject, Log } from '../../contract/index.ts'

/** Told of a record, and the line that it came in. */
export type SchemaCheck = (record: JsonObject, line: string) => void

/**
 * Whether the records are as the tap says they are. It is told once and they land all the same: the schema is the tap's
 * word about a source that changes, and what may not land is said by the schema of the database.
 */
export function createSchemaCheck(stream: string, schema: JsonObject, log: Log): SchemaCheck {
  let validate: ValidateFunction
  try {
    const { $schema: _, ...rest } = JSON.parse(JSON.stringify(schema, dropDraft4Bounds)) as JsonObject
    validate = new Ajv({ strict: false, logger: false, validateFormats: false, validateSchema: false, allowUnionTypes: true, multipleOfPrecision: 9 }).compile(rest)
  } catch {
    log.warn('the schema that the tap sends cannot be used to check records', { stream })
    return () => {}
  }
  let isTold = false
  return (record, line) => {
    // Integers too large for a double are not what a schema knows as such; as doubles they are near enough for this.
    if (isTold || validate(record) || validate((JSON.parse(line) as { record: JsonObject }).record)) return
    isTold = true
    const [error] = validate.errors ?? []
    log.warn('a record is not as the schema of the tap says; it lands', { stream, field: error?.instancePath ?? '', reason: error?.message ?? '' })
  }
}

/** Taps write an old draft, in which these were true or false. */
function dropDraft4Bounds(name: string, value: unknown): unknown {
  return typeof value === 'boolean' && /^exclusiveM(?:ax|in)imum$/.test(name) ? undefined : value
}
