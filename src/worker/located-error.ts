import { relative, sep } from 'node:path'
import { isSyncError, SyncError } from '../contract/index.ts'
import { parseFrame, parseStackFrames, type StackFrame } from '../values/stack-frames.ts'

export interface LoadEnvironment {
  /** The folder that displayed paths are relative to. */
  readonly folder: string
  /** The folder of this package. */
  readonly packageRoot: string
  /** The file whose frame ends the user's part of the stack. */
  readonly loader: string
}

/** Wraps an error from loading the user's file, with its location in user code. Keeps the code of a SyncError. */
export function toLocatedError(error: unknown, file: string, around: LoadEnvironment): SyncError {
  const message = error instanceof Error ? error.message : String(error)
  const isUsers = ({ path }: StackFrame): boolean =>
    !path.startsWith(around.packageRoot) && !path.includes(`${sep}node_modules${sep}`)
  const frames = parseStackFrames(error)
  const end = frames.findIndex((frame) => frame.path === around.loader)
  // A parse error has the source column. A stack frame has the column of the compiled code, which differs.
  const exact = message
    .split('\n')
    .map(parseFrame)
    .find((frame) => frame !== null && isUsers(frame))
  const place = exact ?? frames.slice(0, end < 0 ? frames.length : end).find(isUsers)
  const where = [relative(around.folder, place?.path ?? file), place?.line, exact?.column]
    .filter((part) => part !== undefined)
    .join(':')
  const [firstLine = ''] = message.split('\n')
  const summary = firstLine.replace(/^ParseError:/, 'syntax error:').trim()
  return new SyncError(isSyncError(error) ? error.code : 'WORKER_INVALID', `${where}: ${summary}`, { cause: error })
}
