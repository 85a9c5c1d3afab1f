/**
 * Cycles that every sync keeps regardless of age: the console draws them, health depends on them, and a replay searches
 * them.
 */
export const CYCLES_RETAINED = 100
