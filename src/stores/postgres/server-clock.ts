/** Leases are judged by the one clock that all runners share, so that no runner's own can cut another's short. */
export const NOW_MS_SQL = '(extract(epoch from clock_timestamp()) * 1000)::bigint'
