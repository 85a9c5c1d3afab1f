import {
  AirtableSimulator,
  GithubSimulator,
  HubspotSimulator,
  LinearSimulator,
  SalesforceSimulator,
  ServicenowSimulator,
  StripeSimulator,
  type Fields,
  type LoggedRequest,
  type SimulatorPorts,
  type VendorSimulator,
} from '../../simulators/src/index.ts'

export interface Cycle {
  readonly sync: string
  /** The minimum number of requests for the records of the cycle. `asked` are the requests made. */
  readonly minimum: (counts: Counts, vendor: VendorSimulator, asked: readonly LoggedRequest[]) => number
}

export interface Counts {
  readonly records: number
  readonly updated: number
  readonly created: number
  readonly deleted: number
}

export interface Vendor {
  /** Name of the run; the source's name is its first word. */
  readonly name: string
  readonly type: string
  make(ports: SimulatorPorts): VendorSimulator
  /** The prerequisites of a record, and the fields of the nth. */
  fields(vendor: VendorSimulator, records: number): (n: number) => Fields
  /** How long before the run the first and the last record were created; two hours and one by default. */
  readonly filledBeforeMs?: readonly [number, number]
  readonly backfill: Cycle
  readonly follow: readonly Cycle[]
  /** A record of the vendor as it should have landed. */
  landed?(record: Fields): Fields
}

/** Lists with an end flag: no page beyond the last record. */
const saidToEnd = (rows: number, perPage: number): number => Math.ceil(rows / perPage)
/** Lists that end with a page that is not full, which may be an empty one. */
const endsShort = (rows: number, perPage: number): number => Math.floor(rows / perPage) + 1
/** Before a backfill, one request for the start of the delta. */
const ANCHOR = 1

const stripeCycles = {
  // 100 to a page, and `has_more` is the end.
  backfill: {
    sync: 'follow-backfill',
    minimum: ({ records }: Counts, ..._rest: unknown[]) => ANCHOR + saidToEnd(records, 100),
  },
  // One event for each change, each in a different second: no request is needed to determine their order.
  follow: [
    { sync: 'follow', minimum: ({ updated, created, deleted }: Counts) => saidToEnd(updated + created + deleted, 100) },
  ],
}

export const VENDORS: readonly Vendor[] = [
  {
    name: 'salesforce',
    type: 'Account',
    make: (ports) => new SalesforceSimulator(ports),
    fields: () => (n) => ({ Name: `Account ${n}`, Industry: ['Energy', 'Media', 'Shipping'][n % 3] }),
    // A query returns at most 2,000 rows, and only a short page that is also `done` is the end.
    backfill: { sync: 'follow-backfill', minimum: ({ records }) => ANCHOR + endsShort(records, 2_000) },
    // Deleted rows are among the changed ones.
    follow: [
      { sync: 'follow', minimum: ({ updated, created, deleted }) => endsShort(updated + created + deleted, 2_000) },
    ],
    landed: ({ Id, Name, Industry, CreatedDate, SystemModstamp, IsDeleted }) => ({
      Id,
      Name,
      Industry,
      CreatedDate,
      SystemModstamp,
      IsDeleted,
    }),
  },
  {
    name: 'stripe',
    type: 'customer',
    make: (ports) => new StripeSimulator(ports),
    fields: () => customer,
    ...stripeCycles,
    // And one request for Stripe's time, which gives the minimum age of the listed objects.
    backfill: { sync: 'follow-backfill', minimum: (...given) => stripeCycles.backfill.minimum(...given) + 1 },
    // The first event of an object that the backfill wrote may be older than its listed version: the object is read,
    // once.
    follow: stripeCycles.follow.map(({ sync, minimum }) => ({
      sync,
      minimum: (counts: Counts) => minimum(counts) + counts.updated,
    })),
  },
  {
    name: 'rest (as stripe)',
    type: 'customer',
    make: (ports) => new StripeSimulator(ports),
    fields: () => customer,
    ...stripeCycles,
  },
  {
    name: 'hubspot',
    type: 'contacts',
    make: (ports) => new HubspotSimulator(ports),
    fields: () => contact,
    backfill: { sync: 'follow-backfill', minimum: ({ records }) => ANCHOR + saidToEnd(records, 100) },
    follow: [
      // A search continues from a time, not after a record: the last of a page is the first of the next. A short page
      // is the end.
      { sync: 'follow', minimum: ({ updated, created }) => endsShort(updated + created - 1, 99) },
      // Archived records have a separate list.
      { sync: 'follow', minimum: ({ deleted }) => saidToEnd(deleted, 100) },
    ],
  },
  {
    // All of them created within the five minutes that a delta overlaps: more than the 10,000 that a search returns.
    name: 'hubspot (import)',
    type: 'contacts',
    make: (ports) => new HubspotSimulator(ports),
    fields: () => contact,
    filledBeforeMs: [270_000, 30_000],
    backfill: { sync: 'follow-backfill', minimum: ({ records }) => ANCHOR + saidToEnd(records, 100) },
    follow: [
      { sync: 'follow', minimum: (_, vendor, asked) => searches(vendor, asked) },
      { sync: 'follow', minimum: ({ deleted }) => saidToEnd(deleted, 100) },
    ],
  },
  {
    name: 'servicenow',
    type: 'incident',
    make: (ports) => new ServicenowSimulator(ports),
    fields: () => (n) => ({
      number: `INC${n}`,
      short_description: `Incident ${n}`,
      state: String(n % 7),
      active: 'true',
    }),
    // Pages of 1,000; a backfill ends with an empty one, because a short one may only lack rows hidden from the reader.
    backfill: { sync: 'follow-backfill', minimum: ({ records }) => ANCHOR + saidToEnd(records, 1_000) + 1 },
    follow: [
      { sync: 'follow', minimum: ({ updated, created }) => endsShort(updated + created, 1_000) },
      { sync: 'follow', minimum: ({ deleted }) => endsShort(deleted, 1_000) },
    ],
  },
  {
    name: 'github',
    type: 'issue',
    // An Enterprise server has a configurable limit; the public budget would spread these requests over hours.
    make: (ports) => new GithubSimulator(ports, { pointsPerHour: 50_000_000 }),
    fields: (vendor, records) => {
      const repositories = Array.from({ length: REPOSITORIES }, (_, n) =>
        vendor.create('repository', { name: `repository-${n}` }),
      )
      return (n) => ({
        repository: repositories[homeOf(n, records)]!,
        title: `Issue ${n}`,
        body: `The history of ${n}`,
      })
    },
    backfill: { sync: 'list', minimum: (_, vendor) => pagesOfIssues(vendor) },
    follow: [{ sync: 'list', minimum: (_, vendor) => pagesOfIssues(vendor) }],
    landed: ({ __typename, ...issue }) => issue,
  },
  {
    name: 'linear',
    type: 'issue',
    make: (ports) => new LinearSimulator(ports, { requestsPerHour: 1_000_000, complexityPerHour: 100_000_000 }),
    fields: (vendor) => {
      const team = vendor.create('team', { key: 'SHIP', name: 'Shipping' })
      return (n) => ({ team, title: `Issue ${n}`, priority: n % 5 })
    },
    backfill: { sync: 'list', minimum: ({ records }) => saidToEnd(records, 250) },
    follow: [{ sync: 'list', minimum: ({ records, created, deleted }) => saidToEnd(records + created - deleted, 250) }],
    landed: ({ teamId, ...issue }) => ({ ...issue, team: { id: teamId } }),
  },
  {
    name: 'airtable',
    type: 'Tasks',
    make: (ports) => new AirtableSimulator(ports),
    fields: () => (n) => ({ Name: `Task ${n}`, Points: n % 13 }),
    backfill: { sync: 'list', minimum: ({ records }) => saidToEnd(records, 100) },
    follow: [{ sync: 'list', minimum: ({ records, created, deleted }) => saidToEnd(records + created - deleted, 100) }],
  },
]

function customer(n: number): Fields {
  return { email: `c${n}@example.com`, name: `Customer ${n}` }
}

function contact(n: number): Fields {
  return { email: `c${n}@example.com`, firstname: `First ${n}`, lastname: `Last ${n}` }
}

const REPOSITORIES = 130

/** Half of the issues are in seven repositories, the other half in the first hundred; thirty have none. */
function homeOf(n: number, records: number): number {
  return n < records / 2 ? (n % 7) * 11 : n % 100
}

/**
 * Twenty repositories to a request, each with its first hundred issues; then, until the longest of them is read, one request
 * for the next hundred of all that have more.
 */
function pagesOfIssues(vendor: VendorSimulator): number {
  const sizes = new Map(vendor.truth('repository').map(({ id }) => [id, 0]))
  for (const { repositoryId } of vendor.truth('issue')) sizes.set(repositoryId, sizes.get(repositoryId)! + 1)
  const pages = [...sizes.values()].map((size) => Math.max(1, Math.ceil(size / 100)))
  return Array.from({ length: Math.ceil(pages.length / 20) }, (_, n) =>
    Math.max(...pages.slice(n * 20, n * 20 + 20)),
  ).reduce((sum, most) => sum + most, 0)
}

/**
 * A search for more than 10,000 is repeated for half the time range, as often as needed; the next one tries twice the
 * range that succeeded. Within a range, a page continues from the time of the last record, and a short one is its end.
 */
function searches(vendor: VendorSimulator, asked: readonly LoggedRequest[]): number {
  const times = vendor.records
    .current('contacts')
    .map(({ modifiedAtMs }) => modifiedAtMs)
    .toSorted((a, b) => a - b)
  const bounds = asked
    .filter(({ body }) => body !== '')
    .map(({ body }) =>
      (JSON.parse(body) as { filterGroups: { filters: { value: string }[] }[] }).filterGroups[0]!.filters.map(
        ({ value }) => Number(value),
      ),
    )
  let [cursorMs, untilMs] = bounds[0] as [number, number]
  // The vendor's clock has whole seconds, and is used from the second request on.
  const believedMs = bounds.at(-1)![1]!
  let widthMs = Infinity
  for (let requests = 1; ; requests++, untilMs = believedMs) {
    const throughMs = Math.min(untilMs, cursorMs + widthMs)
    const found = times.filter((time) => time >= cursorMs && time <= throughMs)
    if (found.length > 10_000) widthMs = Math.floor((throughMs - cursorMs) / 2)
    else if (found.length >= 100) cursorMs = found[99]!
    else if (throughMs >= believedMs) return requests
    else {
      cursorMs = throughMs + 1
      widthMs = 2 * (widthMs + 1)
    }
  }
}
