import { ERROR_CODES, type ErrorCategory, type ErrorCode } from '../../contract/index.ts'

export const EXIT_OK = 0

const EXIT_CODE_BY_CATEGORY: Record<ErrorCategory, number> = { failed: 1, input: 2, environment: 3, interrupted: 130 }

/** 1 failed, 2 invalid input, 3 environment problem, 130 interrupted. */
export function exitCodeOf(code: ErrorCode): number {
  return EXIT_CODE_BY_CATEGORY[ERROR_CODES[code].category]
}

/** The exit code of several failures: the environment outranks input and failures, and an interruption outranks all. */
export function worstExitCode(codes: readonly number[]): number {
  return Math.max(EXIT_OK, ...codes)
}
