export interface StackFrame {
  readonly path: string
  readonly line: string
  readonly column: string
}

/** The places in files that an error's stack names, innermost first; Node's own modules are left out. */
export function parseStackFrames(error: unknown): StackFrame[] {
  const stack = error instanceof Error ? error.stack : undefined
  return typeof stack === 'string' ? stack.split('\n').map(parseFrame).filter((frame) => frame !== null) : []
}

/** A line of a stack, with or without a function's name, or the line that a parser adds to its message. */
export function parseFrame(line: string): StackFrame | null {
  const match = /^\s*(?:at (?:.* \()?)?(file:\/\/)?((?:\/|[A-Za-z]:[\\/]).*?):(\d+):(\d+)\)?\s*$/.exec(line)
  if (match === null) return null
  const [, isUrl, path, at, column] = match
  return { path: isUrl === undefined ? path! : decodeURIComponent(new URL(`file://${path!}`).pathname), line: at!, column: column! }
}

/** Where the code of this package is. */
const PACKAGE_ROOT = decodeURIComponent(new URL('..', import.meta.url).pathname)

export function isOwnCode({ path }: StackFrame): boolean {
  return path.startsWith(PACKAGE_ROOT)
}

/** The user's own file and line that threw, as `file.ts:12`; null when the stack has none outside packages. */
export function findThrowSite(error: unknown): string | null {
  const frame = parseStackFrames(error).find((frame) => !isOwnCode(frame) && !/[\\/]node_modules[\\/]/.test(frame.path))
  return frame === undefined ? null : `${frame.path.split(/[\\/]/).at(-1)!}:${frame.line}`
}
