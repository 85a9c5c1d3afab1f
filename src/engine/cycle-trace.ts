import {
  NOOP_SPAN,
  type Attributes,
  type CommitOutcome,
  type CycleFacts,
  type LandingCounts,
  type Meter,
  type Ports,
  type Span,
  type SpanName,
} from '../contract/index.ts'
import { classifyError } from './classify-error.ts'
import type { CycleResult } from './cycle-options.ts'
import { buildRequestAttributes, readRequestId, computeElapsedSeconds } from '../telemetry/request-attributes.ts'
import type { SyncPlan } from './sync-plan.ts'

export interface CycleTraceOptions {
  readonly plan: SyncPlan
  readonly ports: Ports
  readonly tenant: string
  readonly trigger: string
}

/** The trace of one page. */
export interface PageTrace {
  readonly facts: CycleFacts
  readonly span: Span
}

/**
 * The telemetry of one cycle: its spans and metrics. It makes no decisions, and costs almost nothing without a tracer
 * and a meter.
 *
 *   cycle ─┬─ page 1 ─┬─ fetch …
 *          │          └─ commit
 *          └─ page 2 …                requested while page 1 commits
 */
export class CycleTrace {
  readonly #ports: Ports
  readonly #syncAttributes: Attributes
  readonly #span: Span
  /** Pages that have started and not ended. */
  readonly #openPages = new Set<PageTrace>()

  constructor({ plan, ports, tenant, trigger }: CycleTraceOptions) {
    this.#ports = ports
    this.#syncAttributes = { 'tidemark.tenant': tenant, 'tidemark.worker': plan.worker, 'tidemark.sync': plan.sync }
    this.#span = this.#startSpan('cycle', { 'tidemark.mode': plan.mode, 'tidemark.trigger': trigger }, null)
  }

  /** Runs the whole cycle inside its span. */
  async traceCycle(run: () => Promise<CycleResult>): Promise<CycleResult> {
    try {
      return await this.#span.within(run)
    } catch (thrown) {
      // The cycle could not start; otherwise its result carries the error.
      const { code } = classifyError(thrown)
      this.#meter?.record('errors', 1, { 'error.type': code, 'tidemark.outcome': 'failed' })
      this.#span.end(code)
      throw thrown
    }
  }

  startPage(facts: CycleFacts): PageTrace {
    const page = { facts, span: this.#startSpan('page', toPageAttributes(facts), this.#span) }
    this.#openPages.add(page)
    return page
  }

  /** For calls to the source other than pages. */
  forCycle(facts: CycleFacts): PageTrace {
    return { facts, span: this.#span }
  }

  async traceRequest(
    { facts, span: parent }: PageTrace,
    input: string | URL,
    init: RequestInit,
    send: (init: RequestInit) => Promise<Response>,
  ): Promise<Response> {
    if (!this.#isEnabled) return send(init)
    const { clock } = this.#ports
    const requestAttributes = buildRequestAttributes(input, init.method)
    const span = this.#startSpan('fetch', { ...toPageAttributes(facts), ...requestAttributes }, parent)
    const startedAt = clock.now()
    const settle = (answer: Attributes, more: Attributes, error: string | null): void => {
      this.#meter?.record('fetchDuration', computeElapsedSeconds(startedAt, clock.now()), {
        ...requestAttributes,
        ...answer,
      })
      span.setAttributes({ ...answer, ...more })
      span.end(error)
    }
    try {
      const response = await span.within(() => send(withHeaders(init, span.headers)))
      const { status } = response
      settle(
        { 'http.response.status_code': status },
        { 'tidemark.request_id': readRequestId(response) },
        status >= 400 ? String(status) : null,
      )
      return response
    } catch (thrown) {
      const { code } = classifyError(thrown)
      settle({ 'error.type': code }, {}, code)
      throw thrown
    }
  }

  async traceCommit<Outcome extends Pick<CommitOutcome, 'kind'>>(
    page: PageTrace,
    commit: () => Promise<Outcome>,
  ): Promise<Outcome> {
    const { clock } = this.#ports
    const span = this.#startSpan('commit', toPageAttributes(page.facts), page.span)
    const startedAt = clock.now()
    const settle = (outcome: string, error: string | null): void => {
      this.#meter?.record('commitDuration', computeElapsedSeconds(startedAt, clock.now()), {
        'tidemark.outcome': outcome,
      })
      span.setAttributes({ 'tidemark.outcome': outcome })
      span.end(error)
    }
    try {
      const outcome = await span.within(commit)
      // The value is part of the published metrics.
      settle(outcome.kind === 'massDeleteBlocked' ? 'mass_delete_blocked' : outcome.kind, null)
      return outcome
    } catch (thrown) {
      settle('failed', classifyError(thrown).code)
      this.endFailedPage(page, thrown)
      throw thrown
    }
  }

  endLandedPage(page: PageTrace, changes: number, counts: LandingCounts): void {
    if (!this.#isEnabled) return this.#endPage(page, {})
    this.#meter?.record('pages', 1, this.#syncLabels)
    for (const [outcome, count] of Object.entries(counts))
      if (count > 0) this.#meter?.record('records', count, { ...this.#syncLabels, 'tidemark.outcome': outcome })
    this.#endPage(page, { 'tidemark.outcome': 'landed', 'tidemark.changes': changes, ...toCountAttributes(counts) })
  }

  /** The page was not used: it is read again, or no longer needed. */
  endDroppedPage(page: PageTrace, outcome: 'overlap' | 'discarded'): void {
    this.#endPage(page, { 'tidemark.outcome': outcome })
  }

  endFailedPage(page: PageTrace, thrown: unknown): void {
    const { code } = classifyError(thrown)
    // A cancelled page has not failed.
    if (code === 'CANCELLED') this.endDroppedPage(page, 'discarded')
    else this.#endPage(page, { 'tidemark.outcome': 'failed' }, code)
  }

  /** `completeSince`: the time up to which the copy is complete; null if unknown. */
  endCycle(result: CycleResult, completeSince: number | null): CycleResult {
    for (const page of this.#openPages) this.endDroppedPage(page, 'discarded')
    const { stopReason, cycle, resumed, pages, retries, waitedMs, counts, startedAt, endedAt, error } = result
    const reason = { 'tidemark.stop_reason': stopReason }
    // A held lease or a pause is not a failure.
    const code = stopReason === 'held' || stopReason === 'paused' ? null : (error?.code ?? null)
    this.#meter?.record('cycles', 1, { ...this.#syncLabels, ...reason })
    this.#meter?.record('cycleDuration', computeElapsedSeconds(startedAt, endedAt), reason)
    if (code !== null) this.#meter?.record('errors', 1, { 'error.type': code, 'tidemark.outcome': 'failed' })
    if (completeSince !== null)
      this.#meter?.record('lag', computeElapsedSeconds(completeSince, endedAt), this.#syncLabels)
    this.#span.setAttributes({
      ...reason,
      'tidemark.cycle': cycle ?? undefined,
      'tidemark.resumed': resumed,
      'tidemark.pages': pages,
      'tidemark.retries': retries,
      'tidemark.waited_ms': waitedMs,
      ...toCountAttributes(counts),
    })
    this.#span.end(code)
    return this.#span.ids === null ? result : { ...result, trace: this.#span.ids }
  }

  get #isEnabled(): boolean {
    return this.#ports.tracer !== undefined || this.#meter !== undefined
  }

  get #meter(): Meter | undefined {
    return this.#ports.meter
  }

  get #syncLabels(): Attributes {
    const { 'tidemark.tenant': _, ...sync } = this.#syncAttributes
    return sync
  }

  #startSpan(span: SpanName, attributes: Attributes, parent: Span | null): Span {
    return this.#ports.tracer?.start(span, { ...this.#syncAttributes, ...attributes }, parent) ?? NOOP_SPAN
  }

  #endPage(page: PageTrace, attributes: Attributes, error: string | null = null): void {
    if (!this.#openPages.delete(page)) return
    page.span.setAttributes(attributes)
    page.span.end(error)
  }
}

function toPageAttributes({ id, page }: CycleFacts): Attributes {
  return { 'tidemark.cycle': id, 'tidemark.page': page }
}

function toCountAttributes(counts: LandingCounts): Attributes {
  return Object.fromEntries(Object.entries(counts).map(([outcome, count]) => [`tidemark.records.${outcome}`, count]))
}

function withHeaders(init: RequestInit, more: Readonly<Record<string, string>>): RequestInit {
  const added = Object.entries(more)
  if (added.length === 0) return init
  const headers = new Headers(init.headers)
  for (const [name, value] of added) headers.set(name, value)
  return { ...init, headers }
}
