import { maskSecrets } from '../redaction/known-secrets.ts'
import { isOwnCode, parseStackFrames } from '../values/stack-frames.ts'

type ReportException = (message: string) => void

const reporters = new Set<ReportException>()

/** While the guard is installed, an exception from a connector's timer or listener is reported and does not end the process. */
export function guardStrayExceptions(report: ReportException): { remove(): void } {
  reporters.add(report)
  return { remove: () => void reporters.delete(report) }
}

/**
 * True if the exception was reported and the process can continue. False without a guard, and for an exception from this
 * package's own code, after which continuing would be unsafe.
 */
export function reportStrayException(error: unknown): boolean {
  const first = parseStackFrames(error)[0]
  if (reporters.size === 0 || first === undefined || isOwnCode(first)) return false
  const message = error instanceof Error ? `${error.name}: ${error.message}` : typeof error
  for (const report of reporters) report(`${maskSecrets(message)} (${first.path}:${first.line})`)
  return true
}
