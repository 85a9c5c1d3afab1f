import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Attributes as ApiAttributes, Context, Counter, Histogram, Span as ApiSpan } from '@opentelemetry/api'
import {
  METRICS,
  NOOP_SPAN,
  SPANS,
  type Attributes,
  type LogFields,
  type Meter,
  type Metric,
  type MetricName,
  type Span,
  type SpanIds,
  type SpanName,
  type Tracer,
} from '../contract/index.ts'
import { LabelLimiter, pickLabels, maskAttributes } from './label-limiter.ts'

type Api = typeof import('@opentelemetry/api')

export interface Telemetry {
  readonly tracer: Tracer
  readonly meter: Meter
  /** The ids of the active span, under the field names that OpenTelemetry defines for logs. */
  readonly logFields: () => LogFields
}

export interface TelemetryOptions {
  /** Whether requests to vendors carry a traceparent header. */
  readonly sendTraceparent?: boolean
}

/**
 * Connects to the OpenTelemetry SDK of the program; null if none is registered. Checked on each call, because a program
 * may register one at any time. The API package is loaded only then.
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

/** Flushes pending telemetry before the process exits, with a short timeout. */
export async function flushTelemetry(): Promise<void> {
  const api = await loadApi()
  if (api === null) return
  const tracers = api.trace.getTracerProvider() as FlushableProvider & { getDelegate?(): FlushableProvider }
  const providers: readonly FlushableProvider[] = [
    tracers.getDelegate?.() ?? tracers,
    api.metrics.getMeterProvider() as FlushableProvider,
  ]
  const flushed = Promise.allSettled(providers.map(async (provider) => provider.forceFlush?.()))
  await Promise.race([flushed, sleep(FLUSH_MAX_MS)])
}

/** SDK providers have this method, but the API types do not declare it. */
interface FlushableProvider {
  forceFlush?(): Promise<void>
}

async function loadApi(): Promise<Api | null> {
  if (!(API_KEY in globalThis)) return null
  // The API package is an optional peer dependency; another copy may be registered.
  return import('@opentelemetry/api').catch(() => null)
}

const FLUSH_MAX_MS = 3_000

/** The global symbol of the OpenTelemetry registry; the same for all 1.x copies. */
const API_KEY = Symbol.for('opentelemetry.js.api.1')
/** The context key with which the SDK suppresses tracing. */
const SUPPRESS_TRACING_KEY = Symbol.for('OpenTelemetry SDK Context Key SUPPRESS_TRACING')
const INSTRUMENTATION_SCOPE = 'tidemark'

/** One instance per process, so that the limit applies to all cycles together. */
let meter: ApiMeter | undefined

/** Needed because the program may have no context manager. */
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
    // This span represents the request; HTTP instrumentation would duplicate it and send a traceparent.
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

function startSpan(
  api: Api,
  name: SpanName,
  attributes: Attributes,
  parent: Span | null,
  sendTraceparent: boolean,
): Span {
  const { name: shown, isRequest } = SPANS[name]
  const context = parent instanceof ActiveSpan ? parent.context : api.context.active()
  const span = api.trace.getTracer(INSTRUMENTATION_SCOPE).startSpan(
    shown.replace('{method}', String(attributes['http.request.method'])),
    {
      kind: isRequest ? api.SpanKind.CLIENT : api.SpanKind.INTERNAL,
      attributes: maskAttributes(attributes) as ApiAttributes,
    },
    context,
  )
  // The program may have registered metrics without tracing.
  return api.isSpanContextValid(span.spanContext())
    ? new ActiveSpan(api, span, context, isRequest, sendTraceparent)
    : NOOP_SPAN
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
    // Instruments created before the registration are no-ops, so they are created again.
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
    const histogram: Histogram = own.createHistogram(name, {
      unit,
      description: about,
      advice: { explicitBucketBoundaries: [...(buckets ?? [])] },
    })
    return (value, labels) => histogram.record(value, labels)
  }
}
