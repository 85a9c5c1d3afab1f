import { isSyncError, type Clock } from '../contract/index.ts'
import { maskSecrets } from '../redaction/known-secrets.ts'
import type { RestStream } from '../sources/rest/stream.ts'
import {
  findPageSize,
  findTimeParameters,
  methodOf,
  type LookupAnswer,
  type PageQuestion,
  type ProbeEndpoint,
  type ProbePage,
  type ProbeRow,
} from './endpoint.ts'
import { formatTimeLike, unitOf, type TimeText } from './time-text.ts'

/** The answers of a list to a probe. A step that was not reached is absent. */
export interface Observations {
  /** The first page, as the stream declares it. */
  readonly first?: ProbePage
  /** One page that should hold every row of the walk, before the walk and after it. */
  readonly before?: ProbePage
  readonly after?: ProbePage
  /** The same rows in small pages. */
  readonly walk: readonly ProbePage[]
  /** The page size of the walk; null if the API has no parameter for it. */
  readonly walkSize: number | null
  readonly large?: ProbePage
  readonly lower?: BoundObservation
  readonly upper?: BoundObservation
  readonly reversed?: { readonly parameter: string; readonly page: ProbePage }
  /** Readings of the newest rows, in order of time. */
  readonly newest: readonly ProbePage[]
  readonly known?: LookupAnswer
  readonly unknown?: LookupAnswer
  readonly flagged?: LookupAnswer
  readonly filters: readonly { readonly parameter: string; readonly page: ProbePage }[]
  /** Why the probe ended before its last step: a clause. */
  readonly endedBy: string | null
}

/** Requests with a time bound that is the time of a row, and one unit beyond it. */
export interface BoundObservation {
  readonly row: ProbeRow & { readonly time: TimeText }
  readonly at: ProbePage
  readonly beyond?: ProbePage
}

/** The steps of a probe. */
export interface ProbeStep {
  readonly purpose: string
  /** The most requests that the step sends; null if only the budget limits them. */
  readonly requestsMax: number | null
  readonly example: string
}

const REFERENCE_ROWS = 50
const WALK_PAGES_MAX = 4
const LARGE_PAGE = 1_000
const NEWEST_MS = 3_600_000
const FILTERS_MAX = 2

/** The requests that a probe of this stream can send, before the first one is sent. */
export function planProbe(
  stream: RestStream,
  { polls = 0, basePath = '' }: { readonly polls?: number; readonly basePath?: string } = {},
): ProbeStep[] {
  const size = findPageSize(stream)
  const filter = findTimeParameters(stream)
  const method = methodOf(stream)
  const target = (...parameters: readonly (string | undefined)[]): string => {
    const fixed = Object.entries(stream.query ?? {}).map(([name, value]) => `${name}=${String(value)}`)
    const all = [...fixed, ...parameters.filter((parameter) => parameter !== undefined)]
    return `${method} ${basePath}${stream.path}${all.length === 0 ? '' : `?${all.join('&')}`}`
  }
  const sized = (rows: string): string | undefined => (size === null ? undefined : `${size.parameter}=${rows}`)
  const isPaged = stream.page.kind !== 'none'
  const steps: (ProbeStep | false)[] = [
    { purpose: 'first page', requestsMax: 1, example: target(sized(String(size?.value))) },
    filter !== null && {
      purpose: 'newest rows',
      requestsMax: 2 + polls,
      example: target(sized(String(size?.value)), `${filter.since}=<an hour ago>`),
    },
    { purpose: 'reference', requestsMax: 2, example: target(sized(String(REFERENCE_ROWS))) },
    isPaged && { purpose: 'page border', requestsMax: WALK_PAGES_MAX, example: target(sized('<up to a tie>')) },
    size !== null && { purpose: 'page size', requestsMax: 1, example: target(sized(String(LARGE_PAGE))) },
    filter !== null && {
      purpose: 'lower bound',
      requestsMax: 2,
      example: target(sized(String(REFERENCE_ROWS)), `${filter.since}=<time of a row>`),
    },
    filter?.until != null && {
      purpose: 'upper bound',
      requestsMax: 2,
      example: target(sized(String(REFERENCE_ROWS)), `${filter.until}=<time of a row>`),
    },
    findDirection(stream.query) !== null && {
      purpose: 'order',
      requestsMax: 1,
      example: target('<reverse direction>'),
    },
    stream.lookup !== undefined && {
      purpose: 'lookup',
      requestsMax: 3,
      example: `GET ${basePath}${stream.lookup.path}`,
    },
    method === 'GET' && {
      purpose: 'deleted rows',
      requestsMax: FILTERS_MAX,
      example: target('deleted=true'),
    },
  ]
  return steps.filter((step) => step !== false)
}

/** Sends the requests of the plan, as far as the budget allows. */
export async function observe(
  endpoint: ProbeEndpoint,
  clock: Clock,
  options: { readonly watch?: { readonly polls: number; readonly everyMs: number }; readonly signal: AbortSignal },
): Promise<Observations> {
  const seen: Writable<Observations> = { walk: [], walkSize: null, newest: [], filters: [], endedBy: null }
  try {
    await observeAll(endpoint, clock, seen, options)
  } catch (error) {
    if (!isSyncError(error) || options.signal.aborted) throw error
    seen.endedBy = maskSecrets(error.message).replace(/\.$/, '')
  }
  return seen
}

type Writable<T> = { -readonly [Name in keyof T]: T[Name] }

async function observeAll(
  endpoint: ProbeEndpoint,
  clock: Clock,
  seen: Writable<Observations>,
  { watch, signal }: Parameters<typeof observe>[2],
): Promise<void> {
  const { journal, stream, filter } = endpoint
  const ask = (purpose: string, question?: PageQuestion): Promise<ProbePage> =>
    journal.during(purpose, () => endpoint.read(question))
  const first = (seen.first = await ask('first page'))
  if (first.failure !== null) return
  const like = first.rows.find(({ time }) => time !== null)?.time ?? null
  const sinceNewest = like === null ? undefined : formatTimeLike((clock.now() - NEWEST_MS) * 1_000, like)
  const readNewest = async (): Promise<void> => {
    if (filter === null || sinceNewest === undefined) return
    seen.newest = [...seen.newest, await ask('newest rows', { since: sinceNewest })]
  }
  await readNewest()
  const reference = endpoint.size === null ? {} : { size: REFERENCE_ROWS }
  const before = (seen.before = await ask('reference', reference))
  await observeWalk(endpoint, seen, before)
  seen.after = await ask('reference', reference)
  if (endpoint.size !== null) seen.large = await ask('page size', { size: LARGE_PAGE })
  const pivot = choosePivot(before)
  if (filter !== null && pivot !== null) {
    seen.lower = await observeBound(endpoint, pivot, 'since', reference)
    if (filter.until !== null) seen.upper = await observeBound(endpoint, pivot, 'until', reference)
  }
  const direction = findDirection(stream.query)
  if (direction !== null)
    seen.reversed = {
      parameter: direction.parameter,
      page: await ask('order', { ...reference, query: direction.query }),
    }
  await observeLookups(endpoint, seen)
  if (methodOf(stream) === 'GET') await observeFilters(endpoint, seen, before)
  for (let poll = 0; poll < (watch?.polls ?? 0); poll++) {
    await clock.sleep(watch?.everyMs ?? 0, signal)
    await readNewest()
  }
  await readNewest()
}

/** Small pages whose first border lies between two rows of one time, if there are such rows. */
async function observeWalk(endpoint: ProbeEndpoint, seen: Writable<Observations>, before: ProbePage): Promise<void> {
  const { journal, stream } = endpoint
  if (stream.page.kind === 'none' || before.rows.length < 2) return
  const size = endpoint.size === null ? null : chooseWalkSize(before.rows)
  seen.walkSize = size
  let from: ProbePage['next'] = null
  do {
    const next: ProbePage['next'] = from
    const page: ProbePage = await journal.during('page border', () =>
      endpoint.read(size === null ? {} : { size }, next),
    )
    seen.walk = [...seen.walk, page]
    from = page.next
  } while (from !== null && seen.walk.length < WALK_PAGES_MAX)
}

/** The position of the first tie after the first row, so that a page of this size ends inside it. */
export function chooseWalkSize(rows: readonly ProbeRow[]): number {
  const limit = Math.max(1, Math.floor(rows.length / 2))
  for (let index = 1; index < rows.length && index <= Math.max(limit, 2); index++)
    if (isTie(rows[index - 1], rows[index]) && index >= 2) return index
  return isTie(rows[0], rows[1]) ? 1 : Math.min(limit, 5)
}

export function isTie(a: ProbeRow | undefined, b: ProbeRow | undefined): boolean {
  return a?.time != null && a.time.micros === b?.time?.micros
}

/** A row with older and newer rows around it, in a tie if possible. */
export function choosePivot({ rows }: ProbePage): BoundObservation['row'] | null {
  const timed = rows.filter((row): row is BoundObservation['row'] => row.time !== null)
  const times = [...new Set(timed.map(({ time }) => time.micros))].toSorted((a, b) => a - b)
  const inner = times.length > 2 ? times.slice(1, -1) : times
  const countOf = (micros: number): number => timed.filter(({ time }) => time.micros === micros).length
  const middle = inner.toSorted((a, b) => distance(inner, a) - distance(inner, b))
  const chosen = middle.find((micros) => countOf(micros) > 1) ?? middle[0]
  return timed.find(({ time }) => time.micros === chosen) ?? null
}

/** How far a time is from the middle of a sorted list. */
function distance(times: readonly number[], micros: number): number {
  return Math.abs(times.indexOf(micros) - (times.length - 1) / 2)
}

async function observeBound(
  endpoint: ProbeEndpoint,
  row: BoundObservation['row'],
  bound: 'since' | 'until',
  reference: PageQuestion,
): Promise<BoundObservation> {
  const purpose = bound === 'since' ? 'lower bound' : 'upper bound'
  const ask = (time: string | number): Promise<ProbePage> =>
    endpoint.journal.during(purpose, () => endpoint.read({ ...reference, [bound]: time }))
  const at = await ask(row.time.raw)
  if (at.failure !== null) return { row, at }
  const step = unitOf(row.time) * (bound === 'since' ? 1 : -1)
  return { row, at, beyond: await ask(formatTimeLike(row.time.micros + step, row.time)) }
}

async function observeLookups(endpoint: ProbeEndpoint, seen: Writable<Observations>): Promise<void> {
  const { journal, stream } = endpoint
  const rows = seen.first?.rows ?? []
  const isFlagged = ({ flags }: ProbeRow): boolean => Object.values(flags).includes(true)
  const known = rows.find((row) => row.key !== '' && !isFlagged(row))
  if (stream.lookup === undefined || known === undefined) return
  const lookUp = (key: string): Promise<LookupAnswer> => journal.during('lookup', () => endpoint.lookUp(key))
  seen.known = await lookUp(known.key)
  seen.unknown = await lookUp(inventKey(known.key))
  const flagged = [...rows, ...(seen.before?.rows ?? [])].find(isFlagged)
  if (flagged !== undefined) seen.flagged = await lookUp(flagged.key)
}

/** A key of the same form that no row has. */
export function inventKey(key: string): string {
  if (/^\d+$/.test(key)) return '9'.repeat(Math.min(15, key.length + 3))
  return `${key.slice(0, Math.max(0, key.length - 6))}${'zq0zq0'.slice(0, Math.min(6, key.length))}`
}

async function observeFilters(endpoint: ProbeEndpoint, seen: Writable<Observations>, before: ProbePage): Promise<void> {
  const isArchive = before.rows.some(({ flags }) => Object.keys(flags).some((name) => /archive/i.test(name)))
  const names = isArchive ? ['archived', 'include_archived'] : ['deleted', 'include_deleted']
  const { query = {} } = endpoint.stream
  for (const parameter of names.slice(0, FILTERS_MAX)) {
    if (parameter in query) continue
    const reference = endpoint.size === null ? {} : { size: REFERENCE_ROWS }
    const page = await endpoint.journal.during('deleted rows', () =>
      endpoint.read({ ...reference, query: { [parameter]: 'true' } }),
    )
    seen.filters = [...seen.filters, { parameter, page }]
  }
}

/** The parameter that sets the direction of the order, reversed; null if the query has none. */
export function findDirection(
  query: RestStream['query'],
): { readonly parameter: string; readonly query: Readonly<Record<string, string>> } | null {
  for (const [parameter, value] of Object.entries(query ?? {})) {
    if (typeof value !== 'string' || !/sort|order|dir/i.test(parameter)) continue
    const reversed = reverse(value)
    if (reversed !== null) return { parameter, query: { [parameter]: reversed } }
  }
  return null
}

function reverse(value: string): string | null {
  if (/\b(?:asc|ascending)\b/i.test(value)) return value.replace(/\basc(ending)?\b/gi, 'desc$1')
  if (/\b(?:desc|descending)\b/i.test(value)) return value.replace(/\bdesc(ending)?\b/gi, 'asc$1')
  if (/^-[\w.]+$/.test(value)) return value.slice(1)
  return null
}
