import { maskSecrets } from '../redaction/known-secrets.ts'

/**
 * An unhandled rejection in a connector would end the process with every other sync in it. The sync that caused it is
 * unknown, so the rejection is only reported.
 */
export function guardStrayRejections(report: (message: string) => void): { remove(): void } {
  const onRejection = (reason: unknown): void =>
    report(reason instanceof Error ? maskSecrets(`${reason.name}: ${reason.message}`) : typeof reason)
  process.on('unhandledRejection', onRejection)
  return { remove: () => void process.off('unhandledRejection', onRejection) }
}
