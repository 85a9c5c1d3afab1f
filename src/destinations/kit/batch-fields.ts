import type { DestinationBatch, DestinationChange, JsonObject, JsonValue } from '../../contract/index.ts'

/** The values of fields in the first records of a batch. */
export interface BatchFields {
  /** One per record; undefined if the record lacks the field. */
  valuesOf(member: string): FieldValues
}

type FieldValues = ReadonlyArray<JsonValue | undefined>
type Version = FieldValues | JsonObject

/** The records that decide, unless none of them has a value. */
const FIRST_RECORDS = 1_000

/** Reads fields from the values of a change where it has them, without its record. */
export function fieldsOfBatch({ changes, members = [] }: Pick<DestinationBatch, 'changes' | 'members'>): BatchFields {
  const versions = changes.filter(({ action }) => action !== 'deleted')
  let first: Version[] | null = null
  let all: Version[] | null = null
  const valuesIn = (read: readonly Version[], member: string, at: number): FieldValues =>
    read.map((version) => (isValues(version) ? version[at] : ownValueOf(version, member)))
  return {
    valuesOf: (member) => {
      const at = members.indexOf(member)
      const values = valuesIn((first ??= versions.slice(0, FIRST_RECORDS).map(readVersion)), member, at)
      if (values.length === versions.length || values.some((value) => (value ?? null) !== null)) return values
      return valuesIn((all ??= versions.map(readVersion)), member, at)
    },
  }
}

export function fieldsOfRecords(records: readonly JsonObject[]): BatchFields {
  return { valuesOf: (member) => records.map((record) => ownValueOf(record, member)) }
}

function readVersion(change: DestinationChange): Version {
  return change.values ?? change.record ?? {}
}

function isValues(version: Version): version is FieldValues {
  return Array.isArray(version)
}

function ownValueOf(record: JsonObject, member: string): JsonValue | undefined {
  return Object.hasOwn(record, member) ? record[member] : undefined
}
