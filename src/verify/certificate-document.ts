import type { Verification } from '../contract/index.ts'
import { toOutcome } from './describe-report.ts'

/**
 * The certificate of a database as JSON: its last verification that ended without an error; null if there is none. It has
 * no age, so that it stays the same for readers that compare pages.
 */
export function toCertificateDocument(verification: Verification | undefined) {
  const { id, startedAt, report = null } = verification ?? {}
  if (id === undefined || startedAt === undefined || report === null) return null
  const { method, rows, requests, differences, unsettled, repaired, incomplete } = report
  return {
    verification: id,
    outcome: toOutcome(report),
    verifiedAt: new Date(startedAt).toISOString(),
    method,
    rows,
    requests,
    differences,
    unsettled,
    repaired,
    incomplete,
  }
}
