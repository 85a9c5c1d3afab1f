import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'

/** A readable name for a lease holder. The random suffix distinguishes processes with the same pid, as in containers. */
export function holderName(): string {
  return `${hostname()}:${process.pid}:${PROCESS_SUFFIX}`
}

/** Distinguishes the services of one process, which must not evict each other. The first has the name of the process. */
export function serviceHolderName(): string {
  return ++serviceCount === 1 ? holderName() : `${holderName()}.${serviceCount}`
}

let serviceCount = 0

/** The host and pid of a holder; null if the name has another format. */
export function parseHolder(holder: string): { host: string; pid: number } | null {
  const [, , host, pid] = HOLDER_PATTERN.exec(holder) ?? []
  return host === undefined ? null : { host, pid: Number(pid) }
}

/**
 * Whether the process of a holder has exited, so that the lease of a killed run can be taken over. Known only for this
 * host; otherwise the process counts as running, and its lease expires.
 */
export function isHolderGone(holder: string): boolean {
  const [, name, host, pid] = HOLDER_PATTERN.exec(holder) ?? []
  if (host !== hostname() || pid === undefined) return false
  // Our own pid with another suffix: the previous process with this pid has exited, as after a container restart.
  if (Number(pid) === process.pid) return name !== holderName()
  try {
    process.kill(Number(pid), 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

const PROCESS_SUFFIX = randomBytes(4).toString('hex')

/** host:pid:suffix, optionally with the kind of holder before it, and the numbers of an instance and of a run after it. */
const HOLDER_PATTERN =
  /^(?:(?:cli|console|webhook|verify|restate\/[\w.-]+):)?((.+):(\d+):[0-9a-f]+)(?:\.\d+)?(?:#(?:run)?\d+)?$/
