import type { Clock, Random } from './ports.ts'
import { markCutOff } from './cut-off.ts'
import { ApiFaults, type ApiFault } from './api-faults.ts'
import { RequestLog } from './request-log.ts'
import type { Simulator, SimulatorPorts } from './simulator.ts'

/** One request as the vendor's handler sees it, with the false responses it should give. */
export interface ApiCall {
  readonly request: Request
  readonly url: URL
  readonly body: string
  readonly endFlagOverride: 'end' | 'more' | undefined
  readonly shortPage: boolean
  readonly expiredToken: boolean
  readonly partial: boolean
  readonly unsorted: boolean
}

/**
 * The base of every simulated API: faults, and a request log. An API adds its rules in `respond` and its own refusals.
 */
export abstract class ApiSimulator implements Simulator {
  readonly requests = new RequestLog()
  readonly faults: ApiFaults
  protected readonly clock: Clock
  protected readonly random: Random
  protected readonly token: string | undefined
  readonly #previousResponses = new Map<string, { status: number; headers: Headers; text: string }>()

  /** When a token is given, other credentials are refused; otherwise any are accepted, but some are required. */
  constructor(ports: SimulatorPorts, token: string | undefined) {
    this.clock = ports.clock
    this.random = ports.random
    this.token = token
    this.faults = new ApiFaults(ports.random)
  }

  async handle(request: Request): Promise<Response> {
    const body = request.method === 'GET' || request.method === 'HEAD' ? '' : await request.text()
    const logged = this.requests.add(request, body, this.clock.now())
    const response = await this.#respondWithFault(request, body, this.faults.take(request))
    // The vendor's own clock sets the header, also behind a socket that would otherwise use the machine's.
    response.headers.set('date', new Date(this.clock.now()).toUTCString())
    logged.status = response.status
    return response
  }

  protected abstract respond(call: ApiCall): Response | Promise<Response>
  protected abstract rateLimited(retryAfter: string | undefined, secondary: boolean): Response
  protected abstract unauthorized(): Response
  protected abstract serverError(status: number): Response

  /** Bearer or basic; the token may be the basic user or password. */
  protected isAuthorized(request: Request): boolean {
    const header = request.headers.get('authorization')?.trim() ?? ''
    const space = header.indexOf(' ')
    const scheme = header.slice(0, space).toLowerCase()
    const value = header.slice(space + 1)
    if (value === '') return false
    if (this.token === undefined || value === this.token) return true
    return scheme === 'basic' && Buffer.from(value, 'base64').toString().split(':').includes(this.token)
  }

  async #respondWithFault(request: Request, body: string, fault: ApiFault | undefined): Promise<Response> {
    switch (fault?.kind) {
      case 'rate-limit':
        return this.rateLimited(fault.retryAfter, fault.secondary === true)
      case 'unauthorized':
        return this.unauthorized()
      case 'server-error':
        return this.serverError(fault.status ?? 503)
      case 'html':
        return new Response('<!doctype html><title>Sign in</title><h1>Sign in to continue</h1>', {
          headers: { 'content-type': 'text/html; charset=utf-8' },
        })
      case 'slow':
        await this.clock.sleep(fault.ms, request.signal)
        break
      default:
        break
    }
    const endpoint = `${request.method} ${new URL(request.url).pathname}`
    const previous = this.#previousResponses.get(endpoint)
    if (fault?.kind === 'duplicate-page' && previous !== undefined) return new Response(previous.text, previous)
    const response = await this.respond({
      request,
      body,
      url: new URL(request.url),
      endFlagOverride: fault?.kind === 'end-flag' ? fault.value : undefined,
      shortPage: fault?.kind === 'short-page',
      expiredToken: fault?.kind === 'expired-token',
      partial: fault?.kind === 'partial',
      unsorted: fault?.kind === 'unsorted',
    })
    if (!response.ok || response.body === null) return response
    const text = await response.text()
    const { status, headers } = response
    this.#previousResponses.set(endpoint, { status, headers, text })
    if (fault?.kind !== 'truncated') return new Response(text, { status, headers })
    const half = new Response(text.slice(0, Math.ceil(text.length / 2)), { status, headers })
    return fault.how === 'short' ? half : markCutOff(half)
  }
}
