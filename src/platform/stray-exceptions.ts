import { maskSecrets } from '../redaction/known-secrets.ts'
import { isOwnCode, stackFrames } from '../values/stack-frames.ts'

type Report = (message: string) => void

const guards = new Set<Report>()

/** While the guard is there, an exception from a timer or listener of a connector is reported instead of ending the process. */
export function guardStrayExceptions(report: Report): { remove(): void } {
  guards.add(report)
  return { remove: () => void guards.delete(report) }
}

/**
 * True when the exception was reported and the process may go on. False without a guard, and for an exception from this
 * package's own code: there a promise of ours is broken, and going on could make it worse.
 */
export function reportStrayException(error: unknown): boolean {
  const first = stackFrames(error)[0]
  if (guards.size === 0 || first === undefined || isOwnCode(first)) return false
  const message = error instanceof Error ? `${error.name}: ${error.message}` : typeof error
  for (const report of guards) report(`${maskSecrets(message)} (${first.path}:${first.line})`)
  return true
}
