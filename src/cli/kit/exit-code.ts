import { ERROR_CODES, type ErrorCategory, type ErrorCode } from '../../contract/index.ts'

export const EXIT_OK = 0

const EXIT_CODE_BY_BLAME: Record<ErrorCategory, number> = { failed: 1, input: 2, environment: 3, interrupted: 130 }

/** 1 failed, 2 your input, 3 your environment, 130 interrupted. */
export function exitCodeOf(code: ErrorCode): number {
  return EXIT_CODE_BY_BLAME[ERROR_CODES[code].category]
}

/** Of several things that went wrong: what must be repaired first, the environment before the rest; a stop that was asked for counts before all. */
export function worstExitCode(codes: readonly number[]): number {
  return Math.max(EXIT_OK, ...codes)
}
