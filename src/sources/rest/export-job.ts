import { isSyncError, SyncError, type Execute, type JsonValue, type SyncContext } from '../../contract/index.ts'
import { stateRejectedError } from '../../strategies/kit/strategy-errors.ts'
import { createHttpClient, type HttpClient, type HttpResponse } from '../kit/http-client.ts'
import { encodePathSegment } from '../kit/origin.ts'
import { getAtPath } from './field-path.ts'
import { requestAnswer, requestRecords, type ListEndpoint, type RecordsPage } from './list-endpoint.ts'
import type { ExportPaging } from './stream.ts'

/**
 *   (start) ──create──▶ polling ──done──▶ downloading ──last part──▶ end
 *      ▲                   │ failed, expired,    │ expired, empty once
 *      └───────────────────┴ too slow ───────────┘
 *
 * Each arrow is a page, so that the job is in the committed state before it is used. `jobs` counts the jobs of the cycle.
 */
export interface ExportState {
  readonly jobs: number
  readonly job?: string
  readonly createdAt?: number
  readonly polls?: number
  /** The files of a finished job; a single null stands for `download.path`. */
  readonly files?: readonly (string | null)[]
  readonly part?: { readonly file: number; readonly token?: string; readonly records: number }
  readonly total?: number
  /** The last job had no records. A second one without any confirms it. */
  readonly isEmpty?: true
}

const JOBS_MAX = 3
const POLL_EVERY_MS = 5_000
const POLL_MS_MAX = 6 * 60 * 60_000
/** One page polls this long, so that a long job is neither a page that never returns nor thousands of empty pages. */
const POLLING_PAGE_MS = 45_000
const POLL_GROWTH = 1.5
const POLL_EVERY_MS_MAX = 30_000

/** Reads the complete list through export jobs, in replace mode. */
export function createExportReader(listing: ListEndpoint, page: ExportPaging): Execute<ExportState> {
  if ((page.download.path === undefined) === (page.download.urls === undefined))
    throw new SyncError(
      'SYNC_INVALID',
      `Stream "${listing.name}": set \`path\` or \`urls\` in \`download\`, one of them.`,
    )
  const { baseUrl } = page.download
  const files = baseUrl === undefined ? listing.client : createHttpClient({ baseUrl })
  const reader = { listing, page, files }
  return async (state, context) => {
    if (state !== undefined && !Number.isSafeInteger(state.jobs))
      throw stateRejectedError('export', '`jobs` is not a number')
    if (state?.job === undefined) return createJob(reader, state, context)
    if (state.files === undefined) return pollJob(reader, { ...state, job: state.job }, context)
    return downloadPart(reader, { ...state, job: state.job, files: state.files }, context)
  }
}

interface ExportReader {
  readonly listing: ListEndpoint
  readonly page: ExportPaging
  readonly files: HttpClient
}

type ExportPage = Awaited<ReturnType<Execute<ExportState>>>
type JobState = ExportState & { readonly job: string }

async function createJob(
  { listing, page }: ExportReader,
  state: ExportState | undefined,
  context: SyncContext,
): Promise<ExportPage> {
  const { response } = await requestAnswer({ ...listing, format: undefined }, {}, (options) =>
    listing.send(listing.fixed, context, options),
  )
  const job = getAtPath(response.body, page.job)
  if ((typeof job !== 'string' && typeof job !== 'number' && typeof job !== 'bigint') || job === '')
    throw new SyncError(
      'SOURCE_INVALID',
      `Stream "${listing.name}": the response has no job at \`${String(page.job)}\`.`,
    )
  const { isEmpty } = state ?? {}
  const next = { jobs: (state?.jobs ?? 0) + 1, job: String(job), createdAt: context.clock.now(), polls: 0 }
  return { changes: [], hasMore: true, nextState: { ...next, ...(isEmpty && { isEmpty }) } }
}

async function pollJob(reader: ExportReader, state: JobState, context: SyncContext): Promise<ExportPage> {
  const { listing, page } = reader
  const { everyMs = POLL_EVERY_MS, maxMs = POLL_MS_MAX, done, failed = [], path } = page.poll
  const pageEndMs = context.clock.now() + POLLING_PAGE_MS
  for (let polls = state.polls ?? 0; ; polls++) {
    const growth = POLL_GROWTH ** Math.min(polls - 1, 20)
    const waitMs = polls === 0 ? 0 : Math.min(Math.round(everyMs * growth), POLL_EVERY_MS_MAX)
    if (waitMs > 0) await context.clock.sleep(waitMs, context.signal)
    const response = await getOrExpired(listing, fillJob(path, state.job), context)
    if (response === null) return restartJob(reader, state, 'expired')
    const status = getAtPath(response.body, page.poll.status)
    if (typeof status !== 'string')
      throw new SyncError(
        'SOURCE_INVALID',
        `Stream "${listing.name}": the response has no status at \`${String(page.poll.status)}\`.`,
      )
    if (done.includes(status)) return startDownload(reader, state, response)
    if (failed.includes(status)) return restartJob(reader, state, 'failed')
    if (context.clock.now() - (state.createdAt ?? 0) > maxMs) return restartJob(reader, state, 'took too long')
    if (context.clock.now() >= pageEndMs)
      return { changes: [], hasMore: true, nextState: { ...state, polls: polls + 1 } }
  }
}

function startDownload({ listing, page }: ExportReader, state: JobState, { body }: HttpResponse): ExportPage {
  const { urls } = page.download
  const files = urls === undefined ? [null] : toUrls(listing, getAtPath(body, urls))
  const total = page.poll.total === undefined ? undefined : Number(getAtPath(body, page.poll.total) ?? Number.NaN)
  if (total !== undefined && (!Number.isSafeInteger(total) || total < 0))
    throw new SyncError(
      'SOURCE_INVALID',
      `Stream "${listing.name}": the status has no count at \`${String(page.poll.total)}\`.`,
    )
  const { polls: _, ...job } = state
  return {
    changes: [],
    hasMore: true,
    nextState: { ...job, files, part: { file: 0, records: 0 }, ...(total !== undefined && { total }) },
  }
}

function toUrls({ name }: ListEndpoint, value: JsonValue | undefined): string[] {
  const urls = typeof value === 'string' ? [value] : value
  if (!Array.isArray(urls) || !urls.every((url) => typeof url === 'string' && url !== ''))
    throw new SyncError('SOURCE_INVALID', `Stream "${name}": the status of the job does not name its files.`)
  return urls as string[]
}

async function downloadPart(
  reader: ExportReader,
  state: JobState & { readonly files: readonly (string | null)[] },
  context: SyncContext,
): Promise<ExportPage> {
  const { page, listing } = reader
  const { file, token, records: before } = state.part ?? { file: 0, records: 0 }
  if (file >= state.files.length) return finishDownload(reader, state, before)
  const read = await readPart(reader, state.files[file] ?? null, state.job, token, context)
  if (read === null) return restartJob(reader, state, 'expired')
  const next = page.download.next === undefined ? null : read.response.headers.get(page.download.next.header)
  // Some sources send the text null after the last part.
  const hasNext = next !== null && next !== '' && next !== 'null'
  const records = before + read.records.length
  const part = hasNext ? { file, token: next, records } : { file: file + 1, records }
  const changes = read.records.map((record) => listing.toChange(record))
  if (part.file < state.files.length) return { changes, hasMore: true, nextState: { ...state, part } }
  const end = finishDownload(reader, { ...state, part }, records)
  return { ...end, changes: [...changes, ...end.changes] }
}

/** An export that is empty, or shorter than its count, would make the sweep delete existing rows. */
function finishDownload(reader: ExportReader, state: JobState, records: number): ExportPage {
  if (state.total !== undefined && records < state.total)
    throw new SyncError(
      'CURSOR_REJECTED',
      `Stream "${reader.listing.name}": the export has ${records} records, but the source counts ${state.total}. Nothing was deleted; the next cycle exports again.`,
    )
  if (records === 0 && state.isEmpty !== true)
    return { changes: [], hasMore: true, nextState: { jobs: state.jobs, isEmpty: true } }
  return { changes: [], hasMore: false }
}

async function readPart(
  { listing, page, files }: ExportReader,
  file: string | null,
  job: string,
  token: string | undefined,
  context: SyncContext,
): Promise<RecordsPage | null> {
  const { path, next } = page.download
  const query = next === undefined || token === undefined ? {} : { [next.parameter]: token }
  const target = file ?? fillJob(path ?? '', job)
  return requestRecords(listing, context, { cursorRefusals: EXPIRED_STATUSES }, (options) =>
    files.get(target, query, context, options),
  ).catch(nullIfExpired)
}

async function getOrExpired(listing: ListEndpoint, path: string, context: SyncContext): Promise<HttpResponse | null> {
  const options = { cursorRefusals: EXPIRED_STATUSES }
  return requestAnswer({ ...listing, format: undefined }, options, (all) =>
    listing.client.get(path, {}, context, all),
  ).then(({ response }) => response, nullIfExpired)
}

const EXPIRED_STATUSES = [404, 410]

function nullIfExpired(error: unknown): null {
  if (isSyncError(error) && error.code === 'CURSOR_REJECTED') return null
  throw error
}

function restartJob({ listing }: ExportReader, { jobs, isEmpty }: JobState, what: string): ExportPage {
  if (jobs >= JOBS_MAX)
    throw new SyncError(
      'CURSOR_REJECTED',
      `Stream "${listing.name}": ${jobs} export jobs were created, and the last one ${what}. The next cycle creates a new one.`,
    )
  return { changes: [], hasMore: true, nextState: { jobs, ...(isEmpty && { isEmpty }) } }
}

function fillJob(path: string, job: string): string {
  return path.replaceAll('{job}', () => encodePathSegment(job))
}
