import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'

/** Who holds a lease, readable by people. The tail tells two processes apart that got the same pid, as in containers. */
export function holderName(): string {
  return `${hostname()}:${process.pid}:${TAIL}`
}

const TAIL = randomBytes(4).toString('hex')
