import type { SyncContext } from '../contract/index.ts'
import type { Answers } from '../advisor/index.ts'
import { createHttpClient, type HttpClient, type HttpClientOptions } from '../sources/kit/http-client.ts'
import type { RestStream } from '../sources/rest/stream.ts'
import { collectFacts } from './collect-facts.ts'
import { describeUrl, sentQuery, splitUrl, type DescribedUrl, type UrlHints } from './describe-url.ts'
import { methodOf, ProbeEndpoint } from './endpoint.ts'
import type { Fact } from './fact.ts'
import { observe } from './observe.ts'
import { recommend, type Recommendation } from './recommend.ts'
import { RequestJournal, type JournalEntry } from './request-journal.ts'

/** How much a probe may ask. */
export interface ProbeOptions {
  /** The most requests that are sent. */
  readonly requestsMax: number
  /** Further readings of the newest rows. */
  readonly watch?: { readonly polls: number; readonly everyMs: number }
  /** Answers to `advise` that take precedence over the facts. */
  readonly answers?: Answers
}

/** The result of probing a list. */
export interface ListReport {
  readonly stream: RestStream
  readonly facts: readonly Fact[]
  readonly recommendation: Recommendation
  readonly requests: readonly JournalEntry[]
  readonly notes: readonly string[]
  /** How the list of a URL was understood; null for a declared stream. */
  readonly described: DescribedUrl | null
  /** Why the probe ended before its last step: a clause. */
  readonly endedBy: string | null
}

/** Probes a list that is declared as a stream of the `rest` source. */
export async function probeStream(
  stream: RestStream,
  client: HttpClient,
  context: SyncContext,
  options: ProbeOptions,
  journal = new RequestJournal(options.requestsMax),
): Promise<ListReport> {
  // A declared body or GraphQL query reads; a probe adds no other requests with a body.
  const reads = methodOf(stream) === 'POST'
  const endpoint = new ProbeEndpoint(
    stream,
    client,
    journal,
    journal.wrap(context, () => reads),
  )
  const { clock, signal } = context
  const seen = await observe(endpoint, clock, {
    signal,
    ...(options.watch !== undefined && { watch: options.watch }),
  })
  const facts = collectFacts(endpoint, seen)
  return {
    stream,
    facts,
    recommendation: recommend(facts, stream.page, seen.first?.total ?? null, options.answers),
    requests: journal.entries,
    notes: [],
    described: null,
    endedBy: seen.endedBy,
  }
}

/** Probes the list at a URL. The first request finds out what the list looks like. */
export async function probeUrl(
  url: URL,
  hints: UrlHints,
  http: Omit<HttpClientOptions, 'baseUrl'>,
  context: SyncContext,
  options: ProbeOptions,
): Promise<ListReport> {
  const { baseUrl, path } = splitUrl(url)
  const client = createHttpClient({ ...http, baseUrl })
  const journal = new RequestJournal(options.requestsMax)
  const response = await journal.during('description', () => client.get(path, sentQuery(url), journal.wrap(context)))
  const described = describeUrl(url, response, hints)
  const report = await probeStream(described.stream, client, context, options, journal)
  return { ...report, described, notes: described.notes }
}
