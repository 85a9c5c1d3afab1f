/**
 * A clock this far behind its earlier value was set back. A smaller difference is the time a request waited for the
 * lock, and must not hand out a slot twice.
 */
export const CLOCK_STEP_BACK_MS = 60_000
