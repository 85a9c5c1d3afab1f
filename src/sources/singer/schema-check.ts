import { Ajv, type ValidateFunction } from 'ajv'
import type { JsonObject, Log } from '../../contract/index.ts'

/** Checks a record; `line` is the message that contained it. */
export type SchemaCheck = (record: JsonObject, line: string) => void

/**
 * Checks records against the tap's schema. A mismatch is logged once and the record is committed: the tap's schema may
 * be outdated, and the database schema decides what is rejected.
 */
export function createSchemaCheck(stream: string, schema: JsonObject, log: Log): SchemaCheck {
  let validate: ValidateFunction
  try {
    const { $schema: _, ...rest } = JSON.parse(JSON.stringify(schema, dropDraft4Bounds)) as JsonObject
    validate = new Ajv({
      strict: false,
      logger: false,
      validateFormats: false,
      validateSchema: false,
      allowUnionTypes: true,
      multipleOfPrecision: 9,
    }).compile(rest)
  } catch {
    log.warn('the schema of the tap cannot be used to check records', { stream })
    return () => {}
  }
  let isReported = false
  return (record, line) => {
    // Integers beyond double precision fail the schema's types, so they are checked again as doubles.
    if (isReported || validate(record) || validate((JSON.parse(line) as { record: JsonObject }).record)) return
    isReported = true
    const [error] = validate.errors ?? []
    log.warn('a record does not match the schema of the tap; it is committed nevertheless', {
      stream,
      field: error?.instancePath ?? '',
      reason: error?.message ?? '',
    })
  }
}

/** Taps use draft 4, in which these were booleans. */
function dropDraft4Bounds(name: string, value: unknown): unknown {
  return typeof value === 'boolean' && /^exclusiveM(?:ax|in)imum$/.test(name) ? undefined : value
}
