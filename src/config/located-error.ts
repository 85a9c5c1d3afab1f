import { relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isSyncError, SyncError } from '../contract/index.ts'

/** What the user's file threw while it was loaded, with the place in the user's own code. A code of ours is kept. */
export function locatedError(error: unknown, file: string, roots: { folder: string; packageRoot: string }): SyncError {
  const message = error instanceof Error ? error.message : String(error)
  const stack = error instanceof Error ? `${message}\n${error.stack ?? ''}` : ''
  const place = stack.split('\n').map(placeOf).find((found) => found !== null && isUsers(found.path, roots.packageRoot))
  const shownFile = relative(roots.folder, place?.path ?? file)
  const where = place ? `${shownFile}:${place.line}:${place.column}` : shownFile
  const summary = message.split('\n')[0]!.replace(/^ParseError:/, 'syntax error:').trim()
  return new SyncError(isSyncError(error) ? error.code : 'WORKER_INVALID', `${where}: ${summary}`, { cause: error })
}

interface Place {
  readonly path: string
  readonly line: string
  readonly column: string
}

/** Of a stack frame, with or without a function's name, and of the line a parser adds to its message. */
function placeOf(line: string): Place | null {
  const match = /^\s*(?:at (?:.* \()?)?((?:file:\/\/)?(?:\/|[A-Za-z]:[\\/]).*?):(\d+):(\d+)\)?\s*$/.exec(line)
  if (match === null) return null
  const path = match[1]!.startsWith('file://') ? fileURLToPath(match[1]!) : match[1]!
  return { path, line: match[2]!, column: match[3]! }
}

function isUsers(path: string, packageRoot: string): boolean {
  return !path.startsWith(packageRoot) && !path.includes(`${sep}node_modules${sep}`)
}
