/** Of every sync, however old: what the console draws, what health is judged by, and what a replay looks for. */
export const CYCLES_RETAINED = 100
