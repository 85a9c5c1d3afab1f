import { hostname, userInfo } from 'node:os'

/** Who did it, for the audit. */
export function actorName(): string {
  return `cli:${userName()}@${hostname()}`
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    // A container may run under a number that has no name.
    return String(process.getuid?.() ?? 'unknown')
  }
}
