import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Attributes as ApiAttributes, Context, Counter, Histogram, Span as ApiSpan } from '@opentelemetry/api'
import { METRICS, NOOP_SPAN, SPANS, type Attributes, type LogFields, type Meter, type Metric, type MetricName, type Span, type SpanIds, type SpanName, type Tracer } from '../contract/index.ts'
import { LabelLimiter, pickLabels, maskAttributes } from './label-limiter.ts'

type Api = typeof import('@opentelemetry/api')

export interface Telemetry {
  readonly tracer: Tracer
  readonly meter: Meter
  /** Of the span that is active where a line is logged, by the names that OpenTelemetry gives them in logs. */
  readonly logFields: () => LogFields
}

export interface TelemetryOptions {
  /** Whether vendors are told the trace that asks them. */
  readonly sendTraceparent?: boolean
}

/**
 * What the program's own OpenTelemetry takes; null when it has set up none. Looked for anew each time, because a program may
 * set it up at any time, and loaded only then: who does not watch does not pay for it.
 */
export async function openTelemetry(options: TelemetryOptions = {}): Promise<Telemetry | null> {
  const api = await loadApi()
  if (api === null) return null
  const { sendTraceparent = false } = options
  return {
    tracer: { start: (span, attributes, parent) => startSpan(api, span, attributes, parent, sendTraceparent) },
    meter: (meter ??= new ApiMeter(api)),
    logFields: () => {
      const ids = api.trace.getActiveSpan()?.spanContext() ?? activeSpanIds.getStore()
      return ids === undefined ? {} : { trace_id: ids.traceId, span_id: ids.spanId }
    },
  }
}

/** Sends what is still held back, before a process ends at once. Whoever receives it is not waited for longer than a moment. */
export async function flushTelemetry(): Promise<void> {
  const api = await loadApi()
  if (api === null) return
  const tracers = api.trace.getTracerProvider() as FlushableProvider & { getDelegate?(): FlushableProvider }
  const providers: readonly FlushableProvider[] = [tracers.getDelegate?.() ?? tracers, api.metrics.getMeterProvider() as FlushableProvider]
  const flushed = Promise.allSettled(providers.map(async (provider) => provider.forceFlush?.()))
  await Promise.race([flushed, sleep(FLUSH_MAX_MS)])
}

/** What the providers of its SDK can do, and the interface does not say. */
interface FlushableProvider {
  forceFlush?(): Promise<void>
}

async function loadApi(): Promise<Api | null> {
  if (!(API_KEY in globalThis)) return null
  // Somebody else's copy may have been set up where we have none: it is an optional peer.
  return import('@opentelemetry/api').catch(() => null)
}

const FLUSH_MAX_MS = 3_000

/** Where the package registers what a program sets up; the same for all copies of its first major version. */
const API_KEY = Symbol.for('opentelemetry.js.api.1')
/** By which its SDK leaves alone what is done inside. */
const SUPPRESS_TRACING_KEY = Symbol.for('OpenTelemetry SDK Context Key SUPPRESS_TRACING')
const INSTRUMENTATION_SCOPE = 'tidemark'

/** One for the process, so that all cycles together stay within the bounds. */
let meter: ApiMeter | undefined

/** Kept here as well, because a program may have set up no way to carry contexts along. */
const activeSpanIds = new AsyncLocalStorage<SpanIds>()

class ActiveSpan implements Span {
  readonly ids: SpanIds
  readonly headers: Record<string, string> = {}
  readonly #api: Api
  readonly #span: ApiSpan
  readonly context: Context
  readonly #innerContext: Context

  constructor(api: Api, span: ApiSpan, context: Context, isRequest: boolean, sendTraceparent: boolean) {
    this.#api = api
    this.#span = span
    const { traceId, spanId } = span.spanContext()
    this.ids = { traceId, spanId }
    this.context = api.trace.setSpan(context, span)
    // A request is this span: instruments of the client would show it again, and send the trace along.
    this.#innerContext = isRequest ? this.context.setValue(SUPPRESS_TRACING_KEY, true) : this.context
    if (isRequest && sendTraceparent) api.propagation.inject(this.context, this.headers)
  }

  within<T>(act: () => T): T {
    return activeSpanIds.run(this.ids, () => this.#api.context.with(this.#innerContext, act))
  }

  setAttributes(attributes: Attributes): void {
    this.#span.setAttributes(maskAttributes(attributes) as ApiAttributes)
  }

  end(error: string | null = null): void {
    if (error !== null) {
      this.#span.setAttributes({ 'error.type': error })
      this.#span.setStatus({ code: this.#api.SpanStatusCode.ERROR })
    }
    this.#span.end()
  }
}

function startSpan(api: Api, name: SpanName, attributes: Attributes, parent: Span | null, sendTraceparent: boolean): Span {
  const { name: shown, isRequest } = SPANS[name]
  const context = parent instanceof ActiveSpan ? parent.context : api.context.active()
  const span = api.trace.getTracer(INSTRUMENTATION_SCOPE).startSpan(shown.replace('{method}', String(attributes['http.request.method'])), {
    kind: isRequest ? api.SpanKind.CLIENT : api.SpanKind.INTERNAL, attributes: maskAttributes(attributes) as ApiAttributes,
  }, context)
  // Figures alone may have been set up.
  return api.isSpanContextValid(span.spanContext()) ? new ActiveSpan(api, span, context, isRequest, sendTraceparent) : NOOP_SPAN
}

class ApiMeter implements Meter {
  readonly #api: Api
  readonly #labelLimiter = new LabelLimiter()
  #instruments = new Map<MetricName, (value: number, labels: ApiAttributes) => void>()
  #provider: unknown

  constructor(api: Api) {
    this.#api = api
  }

  record(name: MetricName, value: number, labels: Attributes = {}): void {
    const provider = this.#api.metrics.getMeterProvider()
    // Instruments of before it was set up lead nowhere.
    if (provider !== this.#provider) this.#instruments = new Map()
    this.#provider = provider
    let instrument = this.#instruments.get(name)
    if (instrument === undefined) this.#instruments.set(name, (instrument = this.#createInstrument(METRICS[name])))
    instrument(value, this.#labelLimiter.limit(pickLabels(METRICS[name].labels, labels)) as ApiAttributes)
  }

  #createInstrument({ name, kind, unit, about, buckets }: Metric): (value: number, labels: ApiAttributes) => void {
    const own = this.#api.metrics.getMeter(INSTRUMENTATION_SCOPE)
    if (kind === 'counter') {
      const counter: Counter = own.createCounter(name, { unit, description: about })
      return (value, labels) => counter.add(value, labels)
    }
    const histogram: Histogram = own.createHistogram(name, { unit, description: about, advice: { explicitBucketBoundaries: [...(buckets ?? [])] } })
    return (value, labels) => histogram.record(value, labels)
  }
}
