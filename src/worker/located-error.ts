import { relative, sep } from 'node:path'
import { isSyncError, SyncError } from '../contract/index.ts'
import { parseFrame, parseStackFrames, type StackFrame } from '../values/stack-frames.ts'

export interface LoadEnvironment {
  /** What shown paths are relative to. */
  readonly folder: string
  /** Where the code of this package is. */
  readonly packageRoot: string
  /** The file whose frame ends the part of the stack that is the user's. */
  readonly loader: string
}

/** What the user's file threw while it was loaded, with the place in the user's own code. A code of ours is kept. */
export function toLocatedError(error: unknown, file: string, around: LoadEnvironment): SyncError {
  const message = error instanceof Error ? error.message : String(error)
  const isUsers = ({ path }: StackFrame): boolean => !path.startsWith(around.packageRoot) && !path.includes(`${sep}node_modules${sep}`)
  const frames = parseStackFrames(error)
  const end = frames.findIndex((frame) => frame.path === around.loader)
  // A parser knows the column. A frame knows the column of what the file was compiled to, which is another one.
  const exact = message.split('\n').map(parseFrame).find((frame) => frame !== null && isUsers(frame))
  const place = exact ?? frames.slice(0, end < 0 ? frames.length : end).find(isUsers)
  const where = [relative(around.folder, place?.path ?? file), place?.line, exact?.column].filter((part) => part !== undefined).join(':')
  const summary = message.split('\n')[0]!.replace(/^ParseError:/, 'syntax error:').trim()
  return new SyncError(isSyncError(error) ? error.code : 'WORKER_INVALID', `${where}: ${summary}`, { cause: error })
}
