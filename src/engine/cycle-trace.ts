import { NO_SPAN, type Attributes, type CommitOutcome, type CycleFacts, type LandingCounts, type Meter, type Ports, type Span, type SpanName } from '../contract/index.ts'
import { classify } from './classify.ts'
import type { CycleResult } from './cycle-options.ts'
import { requestAttributes, requestIdOf, secondsBetween } from './request-attributes.ts'
import type { SyncPlan } from './sync-plan.ts'

export interface CycleTraceOptions {
  readonly plan: SyncPlan
  readonly ports: Ports
  readonly tenant: string
  readonly trigger: string
}

/** A page as it is seen from outside. */
export interface PageTrace {
  readonly facts: CycleFacts
  readonly span: Span
}

/**
 * What one cycle shows of itself: its spans and its figures. It decides nothing, and where nobody watches it does next to nothing.
 *
 *   cycle ─┬─ page 1 ─┬─ fetch …
 *          │          └─ commit
 *          └─ page 2 …                asked for while page 1 commits
 */
export class CycleTrace {
  readonly #ports: Ports
  readonly #who: Attributes
  readonly #span: Span
  /** Begun, and not at an end yet. */
  readonly #pages = new Set<PageTrace>()

  constructor({ plan, ports, tenant, trigger }: CycleTraceOptions) {
    this.#ports = ports
    this.#who = { 'tidemark.tenant': tenant, 'tidemark.worker': plan.worker, 'tidemark.sync': plan.sync }
    this.#span = this.#start('cycle', { 'tidemark.mode': plan.mode, 'tidemark.trigger': trigger }, null)
  }

  /** All of the cycle happens inside. */
  async around(run: () => Promise<CycleResult>): Promise<CycleResult> {
    try {
      return await this.#span.within(run)
    } catch (thrown) {
      // It could not even begin; of what did, the result tells.
      const { code } = classify(thrown)
      this.#meter?.note('errors', 1, { 'error.type': code, 'tidemark.fate': 'failed' })
      this.#span.end(code)
      throw thrown
    }
  }

  page(facts: CycleFacts): PageTrace {
    const page = { facts, span: this.#start('page', placeOf(facts), this.#span) }
    this.#pages.add(page)
    return page
  }

  /** For what is asked of the source beside its pages. */
  beside(facts: CycleFacts): PageTrace {
    return { facts, span: this.#span }
  }

  async request({ facts, span: parent }: PageTrace, input: string | URL, init: RequestInit, send: (init: RequestInit) => Promise<Response>): Promise<Response> {
    if (!this.#isWatched) return send(init)
    const { clock } = this.#ports
    const asked = requestAttributes(input, init.method)
    const span = this.#start('fetch', { ...placeOf(facts), ...asked }, parent)
    const startedAt = clock.now()
    const settle = (answer: Attributes, more: Attributes, error: string | null): void => {
      this.#meter?.note('fetchDuration', secondsBetween(startedAt, clock.now()), { ...asked, ...answer })
      span.set({ ...answer, ...more })
      span.end(error)
    }
    try {
      const response = await span.within(() => send(withHeaders(init, span.headers)))
      const { status } = response
      settle({ 'http.response.status_code': status }, { 'tidemark.request_id': requestIdOf(response) }, status >= 400 ? String(status) : null)
      return response
    } catch (thrown) {
      const { code } = classify(thrown)
      settle({ 'error.type': code }, {}, code)
      throw thrown
    }
  }

  async commit<Outcome extends Pick<CommitOutcome, 'kind'>>(page: PageTrace, commit: () => Promise<Outcome>): Promise<Outcome> {
    const { clock } = this.#ports
    const span = this.#start('commit', placeOf(page.facts), page.span)
    const startedAt = clock.now()
    const settle = (outcome: string, error: string | null): void => {
      this.#meter?.note('commitDuration', secondsBetween(startedAt, clock.now()), { 'tidemark.outcome': outcome })
      span.set({ 'tidemark.outcome': outcome })
      span.end(error)
    }
    try {
      const outcome = await span.within(commit)
      settle(outcome.kind, null)
      return outcome
    } catch (thrown) {
      settle('failed', classify(thrown).code)
      this.failed(page, thrown)
      throw thrown
    }
  }

  landed(page: PageTrace, changes: number, counts: LandingCounts): void {
    if (!this.#isWatched) return this.#endPage(page, {})
    this.#meter?.note('pages', 1, this.#sync)
    for (const [outcome, count] of Object.entries(counts)) if (count > 0) this.#meter?.note('records', count, { ...this.#sync, 'tidemark.outcome': outcome })
    this.#endPage(page, { 'tidemark.outcome': 'landed', 'tidemark.changes': changes, ...countsOf(counts) })
  }

  /** Read in vain: it is read again, or nobody wants it any more. */
  dropped(page: PageTrace, outcome: 'overlap' | 'discarded'): void {
    this.#endPage(page, { 'tidemark.outcome': outcome })
  }

  failed(page: PageTrace, thrown: unknown): void {
    const { code } = classify(thrown)
    // Whoever was stopped has not failed.
    if (code === 'CANCELLED') this.dropped(page, 'discarded')
    else this.#endPage(page, { 'tidemark.outcome': 'failed' }, code)
  }

  /** `completeSince`: how old the copy is; null when there is none to speak of. */
  ended(result: CycleResult, completeSince: number | null): CycleResult {
    for (const page of this.#pages) this.dropped(page, 'discarded')
    const { stopReason, cycle, resumed, pages, retries, waitedMs, counts, startedAt, endedAt, error } = result
    const reason = { 'tidemark.stop_reason': stopReason }
    // That somebody else is at it, or has paused it, is no failure.
    const code = stopReason === 'held' || stopReason === 'paused' ? null : (error?.code ?? null)
    this.#meter?.note('cycles', 1, { ...this.#sync, ...reason })
    this.#meter?.note('cycleDuration', secondsBetween(startedAt, endedAt), reason)
    if (code !== null) this.#meter?.note('errors', 1, { 'error.type': code, 'tidemark.fate': 'failed' })
    if (completeSince !== null) this.#meter?.note('lag', secondsBetween(completeSince, endedAt), this.#sync)
    this.#span.set({ ...reason, 'tidemark.cycle': cycle ?? undefined, 'tidemark.resumed': resumed, 'tidemark.pages': pages, 'tidemark.retries': retries, 'tidemark.waited_ms': waitedMs, ...countsOf(counts) })
    this.#span.end(code)
    return this.#span.ids === null ? result : { ...result, trace: this.#span.ids }
  }

  get #isWatched(): boolean {
    return this.#ports.tracer !== undefined || this.#meter !== undefined
  }

  get #meter(): Meter | undefined {
    return this.#ports.meter
  }

  get #sync(): Attributes {
    const { 'tidemark.tenant': _, ...sync } = this.#who
    return sync
  }

  #start(span: SpanName, attributes: Attributes, parent: Span | null): Span {
    return this.#ports.tracer?.start(span, { ...this.#who, ...attributes }, parent) ?? NO_SPAN
  }

  #endPage(page: PageTrace, attributes: Attributes, error: string | null = null): void {
    if (!this.#pages.delete(page)) return
    page.span.set(attributes)
    page.span.end(error)
  }
}

function placeOf({ id, page }: CycleFacts): Attributes {
  return { 'tidemark.cycle': id, 'tidemark.page': page }
}

function countsOf(counts: LandingCounts): Attributes {
  return Object.fromEntries(Object.entries(counts).map(([outcome, count]) => [`tidemark.records.${outcome}`, count]))
}

function withHeaders(init: RequestInit, more: Readonly<Record<string, string>>): RequestInit {
  const names = Object.keys(more)
  if (names.length === 0) return init
  const headers = new Headers(init.headers)
  for (const name of names) headers.set(name, more[name]!)
  return { ...init, headers }
}
