import { ERROR_CODES, type Blame, type ErrorCode } from '../contract/index.ts'

export const EXIT_OK = 0

const BY_BLAME: Record<Blame, number> = { failed: 1, input: 2, environment: 3, interrupted: 130 }

/** 1 failed, 2 your input, 3 your environment, 130 interrupted. */
export function exitCodeOf(code: ErrorCode): number {
  return BY_BLAME[ERROR_CODES[code].blame]
}

/** Of several things that went wrong: what must be repaired first, the environment before the rest; a stop that was asked for counts before all. */
export function worstExitCode(codes: readonly number[]): number {
  return Math.max(EXIT_OK, ...codes)
}
