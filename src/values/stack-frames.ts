export interface StackFrame {
  readonly path: string
  readonly line: string
  readonly column: string
}

/** The file locations in an error's stack, innermost first, without Node's own modules. */
export function parseStackFrames(error: unknown): StackFrame[] {
  const stack = error instanceof Error ? error.stack : undefined
  return typeof stack === 'string'
    ? stack
        .split('\n')
        .map(parseFrame)
        .filter((frame) => frame !== null)
    : []
}

/** Parses a line of a stack, with or without a function name, or the line that a parser adds to its message. */
export function parseFrame(line: string): StackFrame | null {
  const match = /^\s*(?:at (?:.* \()?)?(file:\/\/)?((?:\/|[A-Za-z]:[\\/]).*?):(\d+):(\d+)\)?\s*$/.exec(line)
  if (match === null) return null
  const [, urlScheme, path = '', lineNumber = '', column = ''] = match
  return {
    path: urlScheme === undefined ? path : decodeURIComponent(new URL(`file://${path}`).pathname),
    line: lineNumber,
    column,
  }
}

const PACKAGE_ROOT = decodeURIComponent(new URL('..', import.meta.url).pathname)

export function isOwnCode({ path }: StackFrame): boolean {
  return path.startsWith(PACKAGE_ROOT)
}

/** The user's file and line that threw, as `file.ts:12`; null if the stack has none outside packages. */
export function findThrowSite(error: unknown): string | null {
  const frame = parseStackFrames(error).find((frame) => !isOwnCode(frame) && !/[\\/]node_modules[\\/]/.test(frame.path))
  return frame === undefined ? null : `${frame.path.replace(/^.*[\\/]/s, '')}:${frame.line}`
}
