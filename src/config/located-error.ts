import { relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isSyncError, SyncError } from '../contract/index.ts'

export interface Surroundings {
  /** What shown paths are relative to. */
  readonly folder: string
  /** Where the code of this package is. */
  readonly packageRoot: string
  /** The file whose frame ends the part of the stack that is the user's. */
  readonly loader: string
}

/** What the user's file threw while it was loaded, with the place in the user's own code. A code of ours is kept. */
export function locatedError(error: unknown, file: string, around: Surroundings): SyncError {
  const message = error instanceof Error ? error.message : String(error)
  const places = (text: string): Place[] => text.split('\n').map(placeOf).filter((place) => place !== null)
  const isUsers = ({ path }: Place): boolean => !path.startsWith(around.packageRoot) && !path.includes(`${sep}node_modules${sep}`)
  const frames = places(error instanceof Error ? (error.stack ?? '') : '')
  const end = frames.findIndex((frame) => frame.path === around.loader)
  // A parser knows the column. A frame knows the column of what the file was compiled to, which is another one.
  const exact = places(message).find(isUsers)
  const place = exact ?? frames.slice(0, end < 0 ? frames.length : end).find(isUsers)
  const where = [relative(around.folder, place?.path ?? file), place?.line, exact?.column].filter((part) => part !== undefined).join(':')
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
