/** The sizes that `npm run bench` uses; each is a flag. */
export const DEFAULTS = {
  /** Rows of a pass, and rows of a page. */
  records: 200_000,
  page: 1_000,
  /** Repetitions of alternating measurements, and seconds of each under load. */
  turns: 5,
  seconds: 1,
  /** Rows of the load whose first and last tenth are compared; 5,000,000 shows more and takes minutes. */
  long: 500_000,
  /** Entries of the feed, and the databases they are spread over. */
  entries: 100_000,
  databases: 500,
  /** Syncs of each of five tenants. */
  syncs: 2_000,
  /** Tenants with ten databases each. */
  tenants: 1_000,
}

/** Every case from beginning to end within seconds; the results are meaningless. */
export const SMALL = {
  records: 300,
  page: 100,
  turns: 1,
  seconds: 0.1,
  long: 1_000,
  entries: 1_000,
  databases: 5,
  syncs: 10,
  tenants: 3,
}
