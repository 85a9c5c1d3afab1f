import { readFileSync } from 'node:fs'

/** Whether a crash would leave this process's memory in a file, and with it keys and states in the clear. Told on Linux only. */
export function areCoreDumpsEnabled(): boolean {
  try {
    return /^Max core file size +(\w+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1] !== '0'
  } catch {
    return false
  }
}
