import { maskSecrets } from '../redaction/known-secrets.ts'
import { isOwnCode, parseStackFrames } from '../values/stack-frames.ts'

type ReportException = (message: string) => void

const reporters = new Set<ReportException>()

/** While the guard is there, an exception from a timer or listener of a connector is reported instead of ending the process. */
export function guardStrayExceptions(report: ReportException): { remove(): void } {
  reporters.add(report)
  return { remove: () => void reporters.delete(report) }
}

/**
 * True when the exception was reported and the process may go on. False without a guard, and for an exception from this
 * package's own code: there a promise of ours is broken, and going on could make it worse.
 */
export function reportStrayException(error: unknown): boolean {
  const first = parseStackFrames(error)[0]
  if (reporters.size === 0 || first === undefined || isOwnCode(first)) return false
  const message = error instanceof Error ? `${error.name}: ${error.message}` : typeof error
  for (const report of reporters) report(`${maskSecrets(message)} (${first.path}:${first.line})`)
  return true
}
