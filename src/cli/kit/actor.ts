import { hostname, userInfo } from 'node:os'

/** The actor that the audit log records. */
export function actorName(): string {
  return `cli:${userName()}@${hostname()}`
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    // In a container the user id may have no name.
    return String(process.getuid?.() ?? 'unknown')
  }
}
