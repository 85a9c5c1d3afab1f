import { SyncError, type JsonValue, type SyncContext } from '../../contract/index.ts'
import { isObject } from '../kit/classify-response.ts'
import type { HttpClient } from '../kit/http-client.ts'

/** The progress of a query job. */
export interface JobProgress {
  readonly state: 'running' | 'complete' | 'failed'
  /** The number of records in the results of a complete job. */
  readonly count: number
  /** The vendor's reason of a failure; empty without one. */
  readonly reason: string
}

/** One set of results. */
export interface JobResults {
  readonly csv: string
  /** Records of the set, if the response counts them. */
  readonly count: number | null
  /** Null after the last set. */
  readonly next: string | null
}

/** Returns the id of a new query job and the server's time; null if Bulk API 2.0 does not accept the query. */
export async function createJob(
  client: HttpClient,
  soql: string,
  context: SyncContext,
): Promise<{ readonly job: string; readonly serverTime: number | null } | null> {
  const request = {
    operation: 'query',
    query: soql,
    contentType: 'CSV',
    columnDelimiter: 'COMMA',
    lineEnding: 'LF',
  }
  const { status, body, serverTime } = await client.post('/jobs/query', request, context, { answers: [400] })
  if (status === 400) return null
  const id = isObject(body) ? body.id : undefined
  if (typeof id !== 'string' || !JOB_PATTERN.test(id))
    throw new SyncError('SOURCE_INVALID', 'Salesforce returned a query job without an id.')
  return { job: id, serverTime }
}

/** Null if the job no longer exists. */
export async function readJob(client: HttpClient, job: string, context: SyncContext): Promise<JobProgress | null> {
  const { status, body } = await client.get(pathOf(job), {}, context, { answers: [404] })
  if (status === 404) return null
  const { id, state, numberRecordsProcessed: count = 0, errorMessage } = isObject(body) ? body : {}
  // Ids have 15 characters, or 18 with a checksum.
  if (typeof id !== 'string' || id.slice(0, 15) !== job.slice(0, 15))
    throw new SyncError('SOURCE_INVALID', 'Salesforce returned another query job than the requested one.')
  switch (state) {
    case 'Open':
    case 'UploadComplete':
    case 'InProgress':
      return { state: 'running', count: 0, reason: '' }
    case 'JobComplete':
      return { state: 'complete', count: requireCount(count), reason: '' }
    case 'Aborted':
    case 'Failed':
      return {
        state: 'failed',
        count: 0,
        reason: state === 'Aborted' ? 'it was aborted' : describeFailure(errorMessage),
      }
    default:
      throw new SyncError('SOURCE_INVALID', 'Salesforce returned a query job in an unknown state.')
  }
}

/** Null if the job or its results no longer exist. */
export async function readResults(
  client: HttpClient,
  job: string,
  { locator, limit }: { readonly locator: string | null; readonly limit: number },
  context: SyncContext,
): Promise<JobResults | null> {
  const { status, headers, body } = await client.get(
    `${pathOf(job)}/results`,
    { maxRecords: limit, locator },
    context,
    { text: ['text/csv'], answers: LOST_STATUSES },
  )
  if (LOST_STATUSES.includes(status)) return null
  const next = headers.get('sforce-locator')
  if (typeof body !== 'string' || next === null || next === '')
    throw new SyncError('SOURCE_INVALID', 'Salesforce returned the results of a job without `Sforce-Locator`.')
  const count = headers.get('sforce-numberofrecords')
  return {
    csv: body,
    count: count === null ? null : requireCount(Number(count)),
    // The last set has the text `null` as its locator.
    next: next === 'null' ? null : next,
  }
}

/** Deletes the results. Salesforce deletes those that are left after seven days. */
export async function deleteJob(client: HttpClient, job: string, context: SyncContext): Promise<void> {
  await client.delete(pathOf(job), context, { answers: [400, 403, 404, 405, 409] })
}

/** Whether the org may create another query job today; true if the limits are not shown to the user. */
export async function hasJobsLeft(client: HttpClient, context: SyncContext): Promise<boolean> {
  const { status, body } = await client.get('/limits', {}, context, { answers: [403, 404] })
  const limit = status === 200 && isObject(body) ? body.DailyBulkV2QueryJobs : undefined
  return !isObject(limit) || limit.Remaining !== 0
}

const JOB_PATTERN = /^[A-Za-z\d]{15,18}$/
/** The job was deleted, aged out, or was created with another version of the API. */
const LOST_STATUSES = [400, 404, 409, 410]

/** The id comes from a state that may have been edited, and becomes part of a path. */
function pathOf(job: string): string {
  if (!JOB_PATTERN.test(job)) throw new SyncError('STATE_UNREADABLE', 'The stored job has an invalid Salesforce id.')
  return `/jobs/query/${job}`
}

function requireCount(count: JsonValue): number {
  if (typeof count !== 'number' || !Number.isSafeInteger(count) || count < 0)
    throw new SyncError('SOURCE_INVALID', 'Salesforce returned a job whose count of records is not a number.')
  return count
}

/** The error code at the start of the message; the rest may quote values. */
function describeFailure(message: JsonValue | undefined): string {
  const code = typeof message === 'string' ? /^[A-Z][A-Z_]{2,60}/.exec(message)?.[0] : undefined
  return code === undefined ? 'Salesforce gave no reason' : code
}
