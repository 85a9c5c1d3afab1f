import { randomText } from '../kit/ids.ts'
import type { Clock, Random } from '../kit/ports.ts'
import type { Fields } from '../kit/simulator.ts'
import { toId18 } from './record-id.ts'
import { SalesforceError } from './salesforce-error.ts'

/** A query job of Bulk API 2.0. */
export interface QueryJob {
  readonly id: string
  readonly operation: 'query' | 'queryAll'
  readonly objectName: string
  readonly columns: readonly string[]
  readonly apiVersion: string
  readonly createdAtMs: number
  /** When all chunks have been read. */
  readonly doneAtMs: number
  /** Reads the rows as CSV lines by id, as the query sees them now. */
  readonly read: () => ReadonlyMap<string, string>
  /** The rows as the chunks that were read first show them. */
  readonly early: ReadonlyMap<string, string>
  /** Set when the job is complete. */
  lines: readonly string[] | null
  failure: string | null
  isAborted: boolean
}

/** Job data is deleted this long after the job was created. */
const RETENTION_MS = 7 * 86_400_000
const DAY_MS = 86_400_000
export const QUERY_JOBS_PER_DAY = 10_000
const PROCESSING_MS_MAX = 12_000

export interface NewQueryJob {
  readonly operation: 'query' | 'queryAll'
  readonly objectName: string
  readonly columns: readonly string[]
  readonly apiVersion: string
  readonly read: () => ReadonlyMap<string, string>
  readonly failure: string | null
}

/**
 * The query jobs of an org:
 *
 *   UploadComplete ──▶ InProgress ──▶ JobComplete
 *                          │  └─────▶ Failed
 *                          └────────▶ Aborted
 *
 * A job reads its chunks one after another, so its result is no snapshot: each row is shown as it was at some time while
 * the job ran.
 */
export class QueryJobs {
  readonly #clock: Clock
  readonly #random: Random
  readonly #jobs = new Map<string, QueryJob>()
  readonly #perDay: number
  #startedAtMs: number[] = []
  #ids = 0

  constructor(clock: Clock, random: Random, perDay: number = QUERY_JOBS_PER_DAY) {
    this.#clock = clock
    this.#random = random
    this.#perDay = perDay
  }

  get perDay(): number {
    return this.#perDay
  }

  get remaining(): number {
    const since = this.#clock.now() - DAY_MS
    this.#startedAtMs = this.#startedAtMs.filter((at) => at > since)
    return Math.max(0, this.#perDay - this.#startedAtMs.length)
  }

  /** The jobs whose data is stored. */
  get count(): number {
    this.#expire()
    return this.#jobs.size
  }

  create(job: NewQueryJob): QueryJob {
    if (this.remaining === 0)
      throw new SalesforceError('LIMIT_EXCEEDED', 'Exceeded the maximum number of query jobs in 24 hours.')
    const now = this.#clock.now()
    this.#startedAtMs.push(now)
    const created: QueryJob = {
      ...job,
      id: toId18(`750${randomText(this.#random, 6)}${(++this.#ids).toString(36).padStart(6, '0')}`),
      createdAtMs: now,
      doneAtMs: now + Math.floor(this.#random.next() * PROCESSING_MS_MAX),
      early: job.failure === null ? job.read() : new Map(),
      lines: null,
      isAborted: false,
    }
    this.#jobs.set(created.id, created)
    return created
  }

  find(id: string): QueryJob {
    this.#expire()
    const job = this.#jobs.get(id)
    if (job === undefined) throw new SalesforceError('NOT_FOUND', 'The requested resource does not exist')
    this.#advance(job)
    return job
  }

  delete(id: string): void {
    const job = this.find(id)
    if (!ENDED.has(stateOf(job, this.#clock.now())))
      throw new SalesforceError('INVALIDJOBSTATE', 'The job is being processed and cannot be deleted.')
    this.#jobs.delete(id)
  }

  abort(id: string): QueryJob {
    const job = this.find(id)
    job.isAborted = true
    return job
  }

  /** A job whose data was removed early, as after its retention. */
  expire(id: string): void {
    this.#jobs.delete(id)
  }

  render(job: QueryJob): Fields {
    const state = stateOf(job, this.#clock.now())
    const isEnded = ENDED.has(state)
    return {
      ...renderNewJob(job),
      state,
      jobType: 'V2Query',
      systemModstamp: formatTime(isEnded ? job.doneAtMs : this.#clock.now()),
      numberRecordsProcessed: job.lines?.length ?? 0,
      retries: 0,
      totalProcessingTime: Math.min(this.#clock.now(), job.doneAtMs) - job.createdAtMs,
      isPkChunkingSupported: true,
      ...(state === 'Failed' && { errorMessage: job.failure }),
    }
  }

  requireComplete(job: QueryJob): readonly string[] {
    if (job.lines === null || job.isAborted)
      throw new SalesforceError('INVALIDJOBSTATE', 'The results of a job are available when its state is JobComplete.')
    return job.lines
  }

  /** Later chunks are read when the job completes; which rows they hold is not known to the reader. */
  #advance(job: QueryJob): void {
    if (job.lines !== null || job.failure !== null || this.#clock.now() < job.doneAtMs) return
    const late = job.read()
    const lines: string[] = []
    for (const id of [...new Set([...job.early.keys(), ...late.keys()])].toSorted()) {
      const line = (this.#random.next() < 0.5 ? job.early : late).get(id)
      if (line !== undefined) lines.push(line)
    }
    job.lines = lines
  }

  #expire(): void {
    const before = this.#clock.now() - RETENTION_MS
    for (const [id, job] of this.#jobs) if (job.createdAtMs < before) this.#jobs.delete(id)
  }
}

const ENDED: ReadonlySet<string> = new Set(['JobComplete', 'Failed', 'Aborted'])

function stateOf(job: QueryJob, nowMs: number): string {
  if (job.isAborted) return 'Aborted'
  if (nowMs >= job.doneAtMs) return job.failure === null ? 'JobComplete' : 'Failed'
  return nowMs - job.createdAtMs < 1_000 ? 'UploadComplete' : 'InProgress'
}

/** The response to the request that created the job. */
export function renderNewJob(job: QueryJob): Fields {
  return {
    id: job.id,
    operation: job.operation,
    object: job.objectName,
    createdById: '0055g0000000000AAA',
    createdDate: formatTime(job.createdAtMs),
    systemModstamp: formatTime(job.createdAtMs),
    state: 'UploadComplete',
    concurrencyMode: 'Parallel',
    contentType: 'CSV',
    apiVersion: Number(job.apiVersion.slice(1)),
    lineEnding: 'LF',
    columnDelimiter: 'COMMA',
  }
}

function formatTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '+0000')
}

/** Pseudo-random to a reader; the position of the set in the result. Documented example: `MTAwMDA`. */
export function encodeLocator(offset: number): string {
  return Buffer.from(String(offset)).toString('base64url')
}

/** Null for a locator that the job did not return. */
export function decodeLocator(locator: string): number | null {
  const text = Buffer.from(locator, 'base64url').toString()
  return /^\d{1,9}$/.test(text) && encodeLocator(Number(text)) === locator ? Number(text) : null
}

/** Every value is quoted; null and the empty text are the same. */
export function formatCsvLine(values: readonly string[]): string {
  return values.map((value) => `"${value.replaceAll('"', '""')}"`).join(',')
}
