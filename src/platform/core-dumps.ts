import { readFileSync } from 'node:fs'

/** Whether a crash would write the memory of this process, with keys and states in plain text, to a file. Linux only. */
export function areCoreDumpsEnabled(): boolean {
  try {
    return /^Max core file size +(\w+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1] !== '0'
  } catch {
    return false
  }
}
