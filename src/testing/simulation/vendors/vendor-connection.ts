import { isCutOff, type ApiFault as AnswerFaultPlan, type VendorSimulator } from '@tidemark/simulators'
import { SyncError } from '../../../contract/index.ts'
import type { CycleOptions } from '../../../engine/cycle-options.ts'
import type { Fault, FaultKind, FaultInjector } from '../fault-injector.ts'
import type { SimulatedProcess } from '../scheduler.ts'
import type { AnnouncedPauses } from '../announced-pauses.ts'
import type { FalseResponses } from './false-responses.ts'
import type { VendorRequest, VendorStream } from './vendor-stream.ts'

export interface VendorConnection {
  readonly process: SimulatedProcess
  readonly faults: FaultInjector
  readonly stream: VendorStream
  readonly simulator: VendorSimulator
  readonly latencyMs: () => number
  /** Time-out of one call in the engine; a response may arrive later than that. */
  readonly deadlineMs: number
  /** Cursors the vendor has expired, and until when. */
  readonly expiredTokens: Map<string, number>
  readonly pauses: AnnouncedPauses
  readonly falseResponses: FalseResponses
}

/** The connection to the vendor, unreliable and under virtual time. */
export function createVendorFetch(line: VendorConnection): CycleOptions['fetch'] {
  return (input, init = {}) => sendRequest(line, new URL(input), init)
}

async function sendRequest(line: VendorConnection, url: URL, init: RequestInit): Promise<Response> {
  const { process, faults, latencyMs, deadlineMs } = line
  const signal = init.signal ?? undefined
  const asked: VendorRequest = { url, body: typeof init.body === 'string' ? init.body : '' }
  line.pauses.onRequest(process)
  await process.wait('fetch:before', latencyMs(), signal)
  const fault = faults.draw(process.name, 'fetch', NETWORK_FAULTS)
  if (fault?.kind === 'timeout-before') await process.wait('fetch:hangs', NEVER_MS, signal)
  const lie = fault === null ? drawResponseFault(line, asked) : null
  const response = await respond(line, asked, init, toApiFault(fault ?? lie), lie)
  if (fault?.kind === 'timeout-after') await process.wait('fetch:hangs', NEVER_MS, signal)
  // A response that ignores the abort signal and arrives after the caller gave up.
  if (fault?.kind === 'late-answer') await process.wait('fetch:late', deadlineMs * (1 + fault.severity))
  else await process.wait('fetch:after', latencyMs(), signal)
  line.pauses.onResponse(process, response)
  return response
}

/** A nested page has its own draws, so that the other draws of a seed do not depend on the number of nested pages. */
function drawResponseFault(line: VendorConnection, asked: VendorRequest): Fault | null {
  const {
    process: { name },
    faults,
  } = line
  const lie = faults.draw(
    name,
    'fetch answer',
    RESPONSE_FAULTS.filter((kind) => canInject(line, kind, asked)),
  )
  if (lie !== null || !canInject(line, 'cached-nested-page', asked)) return lie
  return faults.draw(name, 'fetch nested answer', ['cached-nested-page'])
}

async function respond(
  line: VendorConnection,
  asked: VendorRequest,
  init: RequestInit,
  plan: AnswerFaultPlan | null,
  lie: Fault | null,
): Promise<Response> {
  const { stream, simulator, process, expiredTokens: forgotten } = line
  const { now } = process.scheduler
  const token = stream.tokenOf(asked)
  if (token !== null && lie?.kind === 'expired-token')
    forgotten.set(token, now + Math.round(lie.severity * TOKEN_EXPIRY_MS_MAX))
  const isForgotten = token !== null && line.faults.enabled && (forgotten.get(token) ?? 0) > now
  const { signal: _, ...rest } = init
  const request = new Request(asked.url, rest)
  const met = isForgotten ? ({ kind: 'expired-token' } as const) : plan
  if (met !== null) simulator.faults.plan(met, { on: (candidate) => candidate === request })
  const response = await simulator.handle(request)
  if (isCutOff(response)) return truncateBody(response)
  const told = await line.falseResponses.applyFault(response, asked, isForgotten ? null : lie)
  line.falseResponses.applyDateFault(told, isForgotten ? null : lie)
  return told
}

/** As the production fetch reports it. */
async function truncateBody(response: Response): Promise<Response> {
  const half = new Uint8Array(await response.arrayBuffer())
  let isSent = false
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (isSent)
        return controller.error(new SyncError('SOURCE_INVALID', 'The simulated vendor broke its response off.'))
      isSent = true
      controller.enqueue(half)
    },
  })
  return new Response(body, { status: response.status, headers: response.headers })
}

function canInject(
  { stream, falseResponses: lies }: VendorConnection,
  kind: ResponseFaultKind,
  asked: VendorRequest,
): boolean {
  switch (kind) {
    case 'login-page':
    case 'auth-refused':
      return true
    case 'wrong-date':
      return stream.supportsFault(kind, asked)
    case 'cached-page':
    case 'cached-nested-page':
      return lies.hasStored(asked) && stream.supportsFault(kind, asked)
    case 'expired-token':
      return stream.tokenOf(asked) !== null
    case 'page-repeated':
      return (
        stream.supportsFault(kind, asked) &&
        lies.canRepeat(asked) &&
        (stream.repeats === undefined || lies.hasPreviousPage(asked))
      )
    default:
      return stream.supportsFault(kind, asked)
  }
}

function toApiFault(fault: Fault | null): AnswerFaultPlan | null {
  switch (fault?.kind) {
    case 'rate-limited':
      return {
        kind: 'rate-limit',
        secondary: fault.severity > 0.8,
        ...(fault.severity < 0.5 && {
          retryAfter: String(fault.severity < 0.1 ? LONG_PAUSE_S : Math.ceil(fault.severity * 20)),
        }),
      }
    case 'server-error':
      return { kind: 'server-error', status: fault.severity < 0.5 ? 500 : 503 }
    case 'truncated':
      return { kind: 'truncated', how: fault.severity < 0.5 ? 'cut-off' : 'short' }
    case 'short-page':
      return { kind: 'short-page' }
    case 'end-flag-early':
      return { kind: 'end-flag', value: 'end' }
    case 'end-flag-never':
      return { kind: 'end-flag', value: 'more' }
    case 'expired-token':
      return { kind: 'expired-token' }
    case 'partial-answer':
      return { kind: 'partial' }
    case 'unsorted':
      return { kind: 'unsorted' }
    case 'page-repeated':
      return { kind: 'duplicate-page' }
    case 'login-page':
      return { kind: 'html' }
    case 'auth-refused':
      return { kind: 'unauthorized' }
    default:
      return null
  }
}

const NEVER_MS = 400 * 24 * 3_600_000
/** Longer than a cycle waits. */
const LONG_PAUSE_S = 120
const TOKEN_EXPIRY_MS_MAX = 5 * 60_000
const NETWORK_FAULTS = [
  'rate-limited',
  'server-error',
  'timeout-before',
  'timeout-after',
  'truncated',
  'late-answer',
] as const satisfies readonly FaultKind[]
type ResponseFaultKind = (typeof RESPONSE_FAULTS)[number] | 'cached-nested-page'
const RESPONSE_FAULTS = [
  'short-page',
  'end-flag-early',
  'end-flag-never',
  'expired-token',
  'partial-answer',
  'login-page',
  'auth-refused',
  'empty-page',
  'page-repeated',
  'wrong-date',
  'wrong-total',
  'cached-page',
  'unsorted',
] as const satisfies readonly FaultKind[]
