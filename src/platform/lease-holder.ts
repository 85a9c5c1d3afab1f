import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'

/** Who holds a lease, readable by people. The tail tells two processes apart that got the same pid, as in containers. */
export function holderName(): string {
  return `${hostname()}:${process.pid}:${PROCESS_SUFFIX}`
}

/** Where the process of a holder runs; null for one that was named otherwise. */
export function parseHolder(holder: string): { host: string; pid: number } | null {
  const [, , host, pid] = HOLDER_PATTERN.exec(holder) ?? []
  return host === undefined ? null : { host, pid: Number(pid) }
}

/**
 * Whether the process of a lease is gone, so that a killed run need not be waited for. Only told of this host; in doubt
 * it lives, and its lease runs out by itself.
 */
export function isHolderGone(holder: string): boolean {
  const [, name, host, pid] = HOLDER_PATTERN.exec(holder) ?? []
  if (host !== hostname() || pid === undefined) return false
  // Our own number with another tail: whoever had it before us is gone, as after the restart of a container.
  if (Number(pid) === process.pid) return name !== holderName()
  try {
    process.kill(Number(pid), 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

const PROCESS_SUFFIX = randomBytes(4).toString('hex')

/** host:pid:tail, perhaps with the kind of holder before it and the number of a cycle after it. */
const HOLDER_PATTERN = /^(?:(?:cli|webhook|restate\/[\w.-]+):)?((.+):(\d+):[0-9a-f]+)(?:#\d+)?$/
