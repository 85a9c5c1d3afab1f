import { SyncError } from '../../../contract/index.ts'
import type { CycleOptions } from '../../../engine/cycle-options.ts'
import { isCutOff } from '../../simulators/kit/cut-off.ts'
import type { Fault as AnswerFaultPlan } from '../../simulators/kit/faults.ts'
import type { VendorSimulator } from '../../simulators/kit/vendor-simulator.ts'
import type { Fault, FaultKind, Faults } from '../faults.ts'
import type { Process } from '../scheduler.ts'
import type { AnnouncedPauses } from '../announced-pauses.ts'
import type { AnswerLies } from './answer-lies.ts'
import type { AnswerRequest, VendorStream } from './vendor.ts'

export interface VendorLine {
  readonly process: Process
  readonly faults: Faults
  readonly stream: VendorStream
  readonly simulator: VendorSimulator
  readonly latencyMs: () => number
  /** How long the engine stays with one call; an answer can be later than that. */
  readonly deadlineMs: number
  /** Places the vendor has forgotten, and until when. */
  readonly forgotten: Map<string, number>
  readonly pauses: AnnouncedPauses
  readonly lies: AnswerLies
}

/** The way to the vendor, over a bad line and under virtual time. */
export function vendorFetch(line: VendorLine): CycleOptions['fetch'] {
  return (input, init = {}) => ask(line, new URL(input), init)
}

async function ask(line: VendorLine, url: URL, init: RequestInit): Promise<Response> {
  const { process, faults, latencyMs, deadlineMs } = line
  const signal = init.signal ?? undefined
  const asked: AnswerRequest = { url, body: typeof init.body === 'string' ? init.body : '' }
  line.pauses.asked(process)
  await process.wait('fetch:before', latencyMs(), signal)
  const fault = faults.draw(process.name, 'fetch', LINE_FAULTS)
  if (fault?.kind === 'timeout-before') await process.wait('fetch:hangs', NEVER_MS, signal)
  const lie = fault === null ? drawLie(line, asked) : null
  const response = await answer(line, asked, init, planOf(fault ?? lie), lie)
  if (fault?.kind === 'timeout-after') await process.wait('fetch:hangs', NEVER_MS, signal)
  // An answer that ignores the signal and comes when nobody wants it any more.
  if (fault?.kind === 'late-answer') await process.wait('fetch:late', deadlineMs * (1 + fault.amount))
  else await process.wait('fetch:after', latencyMs(), signal)
  line.pauses.answered(process, response)
  return response
}

/** A nested page has draws of its own, so that the other draws of a seed do not depend on how many of them there are. */
function drawLie(line: VendorLine, asked: AnswerRequest): Fault | null {
  const { process: { name }, faults } = line
  const lie = faults.draw(name, 'fetch answer', ANSWER_FAULTS.filter((kind) => mayMeet(line, kind, asked)))
  if (lie !== null || !mayMeet(line, 'cached-nested-page', asked)) return lie
  return faults.draw(name, 'fetch nested answer', ['cached-nested-page'])
}

async function answer(line: VendorLine, asked: AnswerRequest, init: RequestInit, plan: AnswerFaultPlan | null, lie: Fault | null): Promise<Response> {
  const { stream, simulator, process, forgotten } = line
  const { now } = process.scheduler
  const token = stream.tokenOf(asked)
  if (token !== null && lie?.kind === 'expired-token') forgotten.set(token, now + Math.round(lie.amount * FORGOTTEN_MS_MAX))
  const isForgotten = token !== null && line.faults.enabled && (forgotten.get(token) ?? 0) > now
  const { signal: _, ...rest } = init
  const request = new Request(asked.url, rest)
  const met = isForgotten ? ({ kind: 'expired-token' } as const) : plan
  if (met !== null) simulator.faults.plan(met, { on: (candidate) => candidate === request })
  const response = await simulator.handle(request)
  if (isCutOff(response)) return brokenOff(response)
  const told = await line.lies.told(response, asked, isForgotten ? null : lie)
  line.lies.date(told, isForgotten ? null : lie)
  return told
}

/** As the production fetch tells it. */
async function brokenOff(response: Response): Promise<Response> {
  const half = new Uint8Array(await response.arrayBuffer())
  let isSent = false
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (isSent) return controller.error(new SyncError('SOURCE_INVALID', 'The simulated vendor broke its answer off.'))
      isSent = true
      controller.enqueue(half)
    },
  })
  return new Response(body, { status: response.status, headers: response.headers })
}

function mayMeet({ stream, lies }: VendorLine, kind: AnswerKind, asked: AnswerRequest): boolean {
  switch (kind) {
    case 'login-page':
    case 'auth-refused':
      return true
    case 'wrong-date':
      return stream.suffers(kind, asked)
    case 'cached-page':
    case 'cached-nested-page':
      return lies.hasKept(asked) && stream.suffers(kind, asked)
    case 'expired-token':
      return stream.tokenOf(asked) !== null
    case 'page-repeated':
      return stream.suffers(kind, asked) && (stream.repeats === undefined || lies.hasPageBefore(asked))
    default:
      return stream.suffers(kind, asked)
  }
}

function planOf(fault: Fault | null): AnswerFaultPlan | null {
  switch (fault?.kind) {
    case 'rate-limited':
      return { kind: 'rate-limit', secondary: fault.amount > 0.8, ...(fault.amount < 0.5 && { retryAfter: String(fault.amount < 0.1 ? LONG_PAUSE_S : Math.ceil(fault.amount * 20)) }) }
    case 'server-error':
      return { kind: 'server-error', status: fault.amount < 0.5 ? 500 : 503 }
    case 'truncated':
      return { kind: 'truncated', how: fault.amount < 0.5 ? 'cut-off' : 'short' }
    case 'short-page':
      return { kind: 'short-page' }
    case 'end-flag-early':
      return { kind: 'end-flag', says: 'end' }
    case 'end-flag-never':
      return { kind: 'end-flag', says: 'more' }
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
const FORGOTTEN_MS_MAX = 5 * 60_000
const LINE_FAULTS = ['rate-limited', 'server-error', 'timeout-before', 'timeout-after', 'truncated', 'late-answer'] as const satisfies readonly FaultKind[]
type AnswerKind = (typeof ANSWER_FAULTS)[number] | 'cached-nested-page'
const ANSWER_FAULTS = [
  'short-page', 'end-flag-early', 'end-flag-never', 'expired-token', 'partial-answer', 'login-page', 'auth-refused',
  'empty-page', 'page-repeated', 'wrong-date', 'wrong-total', 'cached-page', 'unsorted',
] as const satisfies readonly FaultKind[]
