import { maskSecrets } from '../redaction/known-secrets.ts'

/**
 * A promise that a connector started and nobody waits for may fail at any time, and would end the process with every
 * other sync in it. Whose it was cannot be told, so it is reported and blamed on nobody.
 */
export function guardStrayRejections(report: (message: string) => void): { remove(): void } {
  const onRejection = (reason: unknown): void => report(reason instanceof Error ? maskSecrets(`${reason.name}: ${reason.message}`) : typeof reason)
  process.on('unhandledRejection', onRejection)
  return { remove: () => void process.off('unhandledRejection', onRejection) }
}
