import { ERROR_CODES, type CycleRecord, type ErrorCode } from '../contract/index.ts'

/** A cycle as the API shows it, with the next step for its error. */
export function toCycleDocument(record: CycleRecord) {
  const { startedAt, endedAt, error, startSequence: _, ...cycle } = record
  return {
    ...cycle,
    startedAt: new Date(startedAt).toISOString(),
    endedAt: endedAt === null ? null : new Date(endedAt).toISOString(),
    error: error === null ? null : { ...error, advice: adviseOn(error.code, record.sync) },
  }
}

/** The next step for an error of a sync. */
export function adviseOn(code: ErrorCode, sync: string): string {
  return ERROR_CODES[code].advice.replaceAll('<sync>', sync)
}
