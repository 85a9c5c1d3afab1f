import { CsvError } from 'csv-parse'
import { parse } from 'csv-parse/sync'
import { SyncError, type Change, type JsonObject, type JsonValue } from '../../contract/index.ts'
import { parseNumber } from '../../values/json.ts'
import type { DescribedField } from './describe.ts'

/**
 * Converts a set of results of Bulk API 2.0 to records with the values of the REST API. Every set begins with the names of
 * the columns. An empty value is null: Salesforce stores no empty texts.
 */
export function parseBulkRecords(
  csv: string,
  fields: readonly DescribedField[],
  toChange: (record: JsonObject) => Change,
): Change[] {
  const [header, ...rows] = parseCsv(csv)
  const isExpected =
    header?.length === fields.length &&
    fields.every(({ name }, index) => header[index]?.toLowerCase() === name.toLowerCase())
  if (!isExpected)
    throw new SyncError(
      'CURSOR_REJECTED',
      'The results of a Salesforce job have other columns than the object: its fields have changed since the job began.',
    )
  return rows.map((row) => toRecordChange(row, fields, toChange))
}

function parseCsv(csv: string): string[][] {
  try {
    return parse(csv, { bom: true, skip_empty_lines: true })
  } catch (error) {
    // Without the cause: its message quotes values.
    if (error instanceof CsvError)
      throw new SyncError('SOURCE_INVALID', `The result of a Salesforce job is not valid CSV (${error.code}).`)
    throw error
  }
}

function toRecordChange(
  row: readonly string[],
  fields: readonly DescribedField[],
  toChange: (record: JsonObject) => Change,
): Change {
  const record: JsonObject = {}
  for (const [index, { name, type }] of fields.entries()) {
    const text = row[index] ?? ''
    const value = text === '' ? null : parseValue(text, type)
    if (value === undefined)
      return {
        type: 'invalid',
        key: row[fields.findIndex((field) => field.name === 'Id')] || null,
        reason: `Field \`${name}\` is not of type ${type}.`,
        raw: Object.fromEntries(fields.map((field, at) => [field.name, row[at] ?? null])),
      }
    record[name] = value
  }
  return toChange(record)
}

/** Undefined if the text is not of the type. */
function parseValue(text: string, type: string): JsonValue | undefined {
  switch (type) {
    case 'boolean':
      return text === 'true' ? true : text === 'false' ? false : undefined
    case 'int':
    case 'long':
    case 'double':
    case 'currency':
    case 'percent':
      return NUMBER_PATTERN.test(text) ? parseNumber(text) : undefined
    case 'datetime':
      // The REST API writes the same instant with another zone.
      return text.replace(/Z$/, '+0000')
    default:
      return text
  }
}

const NUMBER_PATTERN = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/
