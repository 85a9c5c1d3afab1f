import type { Terminal } from './terminal.ts'

const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Ctrl-C reaches the whole group, and a wrapper such as npm may pass it on: two this close are one. */
const SIGNAL_DEBOUNCE_MS = 250

/** The first signal lets the page in hand end or aborts it; the second ends the process at once. Both are safe. */
export function listenForStop(terminal: Terminal, exitCode: number, words = 'Stopping: what has landed stays, and the next run continues there.'): AbortSignal {
  const stopping = new AbortController()
  let firstAt: number | null = null
  const stop = (): void => {
    const now = performance.now()
    if (firstAt === null) {
      firstAt = now
      terminal.remark('', `${words} Once more to stop at once.`)
      stopping.abort()
    } else if (now - firstAt > SIGNAL_DEBOUNCE_MS) exitImmediately(exitCode)
  }
  for (const name of STOP_SIGNALS) process.on(name, stop)
  return stopping.signal
}

/**
 * As an unheard Ctrl-C would, which a shell reports as 130. `process.exit` first waits for the thread of the store, and
 * that one may be waiting for a database that somebody else keeps busy.
 */
function exitImmediately(exitCode: number): void {
  process.removeAllListeners('SIGINT')
  process.kill(process.pid, 'SIGINT')
  // Still here: the first process of a container is not ended by a signal of its own.
  process.exit(exitCode)
}
