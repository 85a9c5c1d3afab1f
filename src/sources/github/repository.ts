import {
  SyncError,
  type Change,
  type Execute,
  type JsonObject,
  type JsonValue,
  type SyncContext,
  type TimeRange,
} from '../../contract/index.ts'
import { pageNumber, token, type PageNumberState, type TokenState } from '../../strategies/index.ts'
import type { AnchoredExecute } from '../../strategies/kit/anchored-execute.ts'
import { formatIso, requireInstant } from '../../strategies/kit/instants.ts'
import { withLaggedTidemark } from '../../strategies/kit/lagged-tidemark.ts'
import { instantToMs } from '../../values/instant.ts'
import { required } from '../../values/required.ts'
import { isObject } from '../kit/classify-response.ts'
import type { HttpClient, HttpResponse, Query } from '../kit/http-client.ts'
import { parseNextLink } from '../kit/link-header.ts'
import { limitRange, withoutRange, withSinceScope } from '../kit/since.ts'
import { timeWindow, type TimeWindowState } from '../../strategies/kit/time-window.ts'
import {
  timestampPaging,
  type TimestampPage,
  type TimestampPagingState,
} from '../../strategies/kit/timestamp-paging.ts'
import { withoutTidemark } from '../../strategies/kit/without-tidemark.ts'

/** A list of one repository, read completely in every cycle. Pass it to `worker.sync`. */
export interface GithubList<State> {
  readonly mode: 'replace'
  readonly execute: Execute<State>
}

/**
 * A list of one repository whose changes are followed by their time. Pass it to `worker.track`: the backfill finds the
 * records that were deleted.
 */
export interface GithubPair<Listing, Delta> {
  readonly backfill: Execute<Listing>
  readonly delta: AnchoredExecute<Delta>
  readonly anchor: (context: SyncContext) => Promise<Delta | undefined>
  readonly lagMs: number
}

/** The streams of one repository. The keys are node ids, as of the GraphQL streams, and the hashes of commits. */
export interface GithubRepository {
  /** Issues and pull requests: a pull request has the field `pull_request`. */
  readonly issues: GithubPair<TimestampPagingState, TimestampPagingState>
  readonly issueComments: GithubPair<TimestampPagingState, TimestampPagingState>
  readonly reviewComments: GithubPair<TimestampPagingState, TimestampPagingState>
  readonly pullRequests: GithubPair<PageNumberState, TimeWindowState>
  /** The commits of the default branch. */
  readonly commits: GithubList<TokenState>
  readonly labels: GithubList<PageNumberState>
  readonly milestones: GithubList<PageNumberState>
  readonly releases: GithubList<PageNumberState>
  readonly stargazers: GithubList<PageNumberState>
  readonly workflowRuns: GithubList<PageNumberState>
}

/** The visibility delay of a change in a list. */
const LAG_MS = 15_000
const HEADERS = { accept: 'application/vnd.github+json', 'x-github-api-version': '2022-11-28' }
const STAR_HEADERS = { ...HEADERS, accept: 'application/vnd.github.star+json' }

export interface RepositorySettings {
  readonly client: HttpClient
  /** `/repos/owner/name`, below the base URL. */
  readonly path: string
  readonly since: string | undefined
  /** Records per request. */
  readonly pageSize: number
}

export function createRepository(settings: RepositorySettings): GithubRepository {
  const pages = (list: string, options: Partial<NumberedList> = {}): GithubList<PageNumberState> => ({
    mode: 'replace',
    execute: withoutRange(listPages(settings, { list, ...options }), 'GitHub cannot filter this list by time'),
  })
  return {
    issues: followUpdates(settings, 'issues', { state: 'all' }),
    issueComments: followUpdates(settings, 'issues/comments', {}),
    reviewComments: followUpdates(settings, 'pulls/comments', {}),
    pullRequests: followPullRequests(settings),
    commits: { mode: 'replace', execute: listCommits(settings) },
    labels: pages('labels'),
    milestones: pages('milestones', { query: { state: 'all' } }),
    releases: pages('releases'),
    stargazers: pages('stargazers', {
      headers: STAR_HEADERS,
      toChange: (star) => toUpsert(star, requireId(isObject(star.user) ? star.user : {})),
    }),
    workflowRuns: pages('actions/runs', { member: 'workflow_runs' }),
  }
}

/**
 * For lists with `since`, sorted by the time of the last change. Each page starts at the last time of the previous one,
 * so no deletion shifts a record out of view. A record that changes meanwhile moves to the end and is read there, so the
 * complete list can be read in the same way.
 */
function followUpdates(
  settings: RepositorySettings,
  list: string,
  query: Query,
): GithubPair<TimestampPagingState, TimestampPagingState> {
  const { since, pageSize } = settings
  const readPage = async (
    range: TimeRange,
    { since: cursor = range.from, page = 1 }: { readonly since: string | undefined; readonly page?: number },
    context: SyncContext,
  ): Promise<TimestampPage> => {
    const parameters = {
      ...query,
      sort: 'updated',
      direction: 'asc',
      // Whole seconds, because GitHub ignores the rest.
      ...(cursor !== undefined && { since: toWholeSecond(cursor) }),
    }
    const { records, response } = await readList(settings, { list, query: parameters }, page, context)
    if (cursor !== undefined) rejectEarlierPage(records[0], toWholeSecond(cursor))
    return { records: records.filter((record) => isInRange(record, range)), serverTime: response.serverTime }
  }
  const read = (range: TimeRange): AnchoredExecute<TimestampPagingState> =>
    timestampPaging({
      lagMs: LAG_MS,
      pageSize,
      timestamp: (record) => (isObject(record) ? requireString(record, 'updated_at') : undefined),
      toChange: (record) => toUpsert(requireObject(record)),
      read: ({ since: cursor }, context) => readPage(range, { since: cursor }, context),
      // More than a page can change in one second: a label that is removed from all issues, a transfer.
      readNumbered: (position, context) => readPage(range, position, context),
    })
  const listing = read(since === undefined ? {} : { from: since })
  const delta = withoutTidemark(listing)
  return {
    backfill: Object.assign(withSinceScope(withLaggedTidemark(listing, LAG_MS), since), {
      range: (range: TimeRange) => read(limitRange(range, since)),
    }),
    delta,
    anchor: (context) => delta.anchor(context),
    lagMs: LAG_MS,
  }
}

/**
 * Pull requests have no `since`. They are listed by their last change, newest first, until one is older than the window.
 * They cannot be deleted, so a page boundary only moves towards older ones: none is missed.
 */
function followPullRequests(settings: RepositorySettings): GithubPair<PageNumberState, TimeWindowState> {
  const { since } = settings
  const list = 'pulls'
  const delta = withoutTidemark(
    timeWindow({
      lagMs: LAG_MS,
      read: async ({ since: from = since, token: place }, context) => {
        const [page, lastSeen] = parsePlace(place)
        const query = { state: 'all', sort: 'updated', direction: 'desc' }
        const { records, response } = await readList(settings, { list, query }, page, context)
        const last = records.at(-1)
        if (last !== undefined && requireId(last) === lastSeen) throw createRepeatedPageError()
        requireNewestFirst(records)
        const range = from === undefined ? {} : { from }
        const changes = records.filter((record) => isInRange(record, range)).map((record) => toUpsert(record))
        const isEnd = last === undefined || !isInRange(last, range)
        return { changes, next: isEnd ? null : `${page + 1}:${requireId(last)}`, serverTime: response.serverTime }
      },
    }),
  )
  const query = { state: 'all', sort: 'created', direction: 'asc' }
  const read = (range: TimeRange): Execute<PageNumberState> => listPages(settings, { list, query, range })
  return {
    backfill: Object.assign(withSinceScope(read(since === undefined ? {} : { from: since }), since), {
      range: (range: TimeRange) => read(limitRange(range, since)),
    }),
    delta,
    anchor: (context) => delta.anchor(context),
    lagMs: LAG_MS,
  }
}

/** A commit never changes. All pages are read from the commit that was the newest on the first one. */
function listCommits(settings: RepositorySettings): Execute<TokenState> & Pick<Execute<TokenState>, 'range'> {
  const { since, pageSize } = settings
  const read = (range: TimeRange): Execute<TokenState> =>
    withLaggedTidemark(
      token({
        limit: pageSize,
        confirms: true,
        read: async ({ token: place }, context) => {
          const [page, lastSeen, head] = parsePlace(place)
          const query = { sha: head, ...toCommitTimes(range) }
          // 409: the repository is empty.
          const list = { list: 'commits', query, answers: [409] }
          const { records, response } = await readList(settings, list, page, context)
          const last = records.at(-1)
          if (last === undefined) return { changes: [], next: null }
          const lastSha = requireString(last, 'sha')
          if (lastSha === lastSeen) throw createRepeatedPageError()
          const start = head ?? requireString(requireObject(records[0]), 'sha')
          return {
            changes: records.map((commit) => toCommitUpsert(commit)),
            next: parseNextLink(response.headers) === null ? null : `${page + 1}:${lastSha}:${start}`,
          }
        },
      }),
      LAG_MS,
    )
  const listing = withSinceScope(read(since === undefined ? {} : { from: since }), since)
  return Object.assign(listing, { range: (range: TimeRange) => read(limitRange(range, since)) })
}

interface NumberedList {
  readonly list: string
  readonly query?: Query
  readonly headers?: Readonly<Record<string, string>>
  /** The member of the body that holds the list. */
  readonly member?: string
  readonly answers?: readonly number[]
  /** A range of `updated_at`. */
  readonly range?: TimeRange
  readonly toChange?: (record: JsonObject) => Change
}

/** Numbered pages shift when a record is deleted, so the list is read until two passes agree. */
function listPages(settings: RepositorySettings, list: NumberedList): Execute<PageNumberState> {
  const { range = {}, toChange = toUpsert } = list
  return withLaggedTidemark(
    pageNumber({
      read: async ({ page }, context) => {
        const { records, response, total } = await readList(settings, list, page, context)
        const changes = records.filter((record) => isInRange(record, range)).map((record) => toChange(record))
        const end = parseNextLink(response.headers) === null
        return { changes, count: records.length, end, ...(total !== undefined && { total }) }
      },
    }),
    LAG_MS,
  )
}

interface ListPage {
  readonly records: JsonObject[]
  readonly response: HttpResponse
  readonly total: number | undefined
}

async function readList(
  { client, path, pageSize }: RepositorySettings,
  { list, query = {}, headers = HEADERS, member, answers = [] }: NumberedList,
  page: number,
  context: SyncContext,
): Promise<ListPage> {
  const response = await client.get(
    `${path}/${list}`,
    { ...query, per_page: pageSize, ...(page > 1 && { page }) },
    context,
    { headers, answers },
  )
  const { body, status } = response
  if (answers.includes(status)) return { records: [], response, total: undefined }
  const records = member !== undefined && isObject(body) ? body[member] : body
  if (!Array.isArray(records) || !records.every(isObject))
    throw new SyncError('SOURCE_INVALID', 'GitHub returned a response without a list.')
  const total = isObject(body) && typeof body.total_count === 'number' ? body.total_count : undefined
  return { records, response, total }
}

/** A page that begins before the requested time answers another request. */
function rejectEarlierPage(first: JsonObject | undefined, since: string): void {
  if (first !== undefined && requireInstant(first.updated_at, '`updated_at`') < requireInstant(since, '`since`'))
    throw createRepeatedPageError()
}

/** The page of a list in another order answers another request. */
function requireNewestFirst(records: readonly JsonObject[]): void {
  const times = records.map((record) => requireInstant(record.updated_at, '`updated_at`'))
  if (times.some((time, index) => index > 0 && time > required(times[index - 1], 'the time before it')))
    throw new SyncError('SOURCE_INVALID', 'GitHub returned pull requests in another order than the requested one.')
}

function createRepeatedPageError(): SyncError {
  return new SyncError('SOURCE_INVALID', 'GitHub returned the previous page instead of the requested one.')
}

function isInRange(record: JsonObject, { from, to }: TimeRange): boolean {
  if (from === undefined && to === undefined) return true
  const instant = requireInstant(record.updated_at, '`updated_at`')
  return (
    (from === undefined || instant >= requireInstant(toWholeSecond(from), '`from`')) &&
    (to === undefined || instant < requireInstant(to, '`to`'))
  )
}

/** Both ends of the times of commits are included, in whole seconds. */
function toCommitTimes({ from, to }: TimeRange): Query {
  const lastMs =
    to === undefined ? undefined : Math.ceil(instantToMs(requireInstant(to, '`to`')) / 1_000) * 1_000 - 1_000
  return {
    ...(from !== undefined && { since: toWholeSecond(from) }),
    ...(lastMs !== undefined && { until: toWholeSecond(formatIso(lastMs)) }),
  }
}

function toWholeSecond(instant: string): string {
  return `${requireInstant(instant, 'A time').slice(0, 19)}Z`
}

/** A page number, the last record of the page before it, and the newest commit. */
function parsePlace(place: string | undefined): [page: number, lastSeen: string | undefined, head: string | undefined] {
  const [page = '1', lastSeen, head] = place?.split(':') ?? []
  return [Number(page), lastSeen, head]
}

function toUpsert(record: JsonObject, key = requireId(record)): Change {
  const { updated_at: updatedAt } = record
  return { type: 'upsert', key, record, ...(typeof updatedAt === 'string' && { upstreamUpdatedAt: updatedAt }) }
}

function toCommitUpsert(record: JsonObject): Change {
  return { type: 'upsert', key: requireString(record, 'sha'), record }
}

/** The id that GraphQL uses too, and that is unique in all repositories. */
function requireId(record: JsonObject): string {
  return requireString(record, 'node_id')
}

function requireObject(value: JsonValue | undefined): JsonObject {
  if (!isObject(value)) throw new SyncError('SOURCE_INVALID', 'A GitHub record is not an object.')
  return value
}

function requireString(record: JsonObject, field: string): string {
  const value = record[field]
  if (typeof value !== 'string' || value === '')
    throw new SyncError('SOURCE_INVALID', `A GitHub record has no \`${field}\`.`)
  return value
}
