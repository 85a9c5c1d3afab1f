/**
 * Lease expiry uses the one clock that all runners share, so that no runner's own clock can shorten another's lease.
 */
export const NOW_MS_SQL = '(extract(epoch from clock_timestamp()) * 1000)::bigint'
