import type { Terminal } from './terminal.ts'

const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Ctrl-C reaches the process group, and a wrapper such as npm may forward it: two signals this close count as one. */
const SIGNAL_DEBOUNCE_MS = 250

/** The first signal stops after the current page or aborts it; the second exits immediately. Both are safe. */
export function listenForStop(
  terminal: Terminal,
  exitCode: number,
  notice = 'Stopping. Committed pages are kept, and the next run continues after them.',
): AbortSignal {
  const stopping = new AbortController()
  let firstAt: number | null = null
  const stop = (): void => {
    const now = performance.now()
    if (firstAt === null) {
      firstAt = now
      terminal.remark('', `${notice} Press Ctrl-C again to exit immediately.`)
      stopping.abort()
    } else if (now - firstAt > SIGNAL_DEBOUNCE_MS) exitImmediately(exitCode)
  }
  for (const name of STOP_SIGNALS) process.on(name, stop)
  return stopping.signal
}

/**
 * Ends like an unhandled Ctrl-C, which a shell reports as 130. `process.exit` would wait for the store's thread, which
 * may be blocked on a locked database.
 */
function exitImmediately(exitCode: number): void {
  process.removeAllListeners('SIGINT')
  process.kill(process.pid, 'SIGINT')
  // PID 1 of a container ignores signals that it sends to itself.
  process.exit(exitCode)
}
