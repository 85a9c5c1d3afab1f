/**
 * A clock that is so far behind what it said before was set back. Less than that is the time a request waited for its turn,
 * and no reason to give a slot twice.
 */
export const CLOCK_STEP_BACK_MS = 60_000
