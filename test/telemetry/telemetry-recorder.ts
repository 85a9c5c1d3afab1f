import { AsyncLocalStorage } from 'node:async_hooks'
import {
  context,
  metrics,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Context,
  type ContextManager,
} from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import {
  AggregationTemporality,
  DataPointType,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
  type HistogramMetricData,
} from '@opentelemetry/sdk-metrics'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { onTestFinished } from 'vitest'

export interface SeenSpan {
  readonly name: string
  readonly kind: 'internal' | 'client'
  readonly id: string
  readonly trace: string
  readonly parent: string | null
  readonly attributes: Record<string, unknown>
  readonly isError: boolean
  readonly startedAt: number
  readonly endedAt: number
}

export interface SeenPoint {
  readonly labels: Record<string, unknown>
  /** For a histogram, the sum. */
  readonly value: number
  readonly count: number
}

/** A program's own OpenTelemetry setup whose exporters keep everything; removed with the test. */
export class TelemetryRecorder {
  readonly #spans = new InMemorySpanExporter()
  readonly #metrics = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  readonly #meters: MeterProvider
  /** Spans that were started and not ended. */
  open = 0

  /** `carries`: whether a context manager propagates contexts. */
  constructor({ carries = true }: { carries?: boolean } = {}) {
    const counting: SpanProcessor = {
      onStart: () => void this.open++,
      onEnd: () => void this.open--,
      forceFlush: async () => {},
      shutdown: async () => {},
    }
    const tracers = new BasicTracerProvider({ spanProcessors: [counting, new SimpleSpanProcessor(this.#spans)] })
    this.#meters = new MeterProvider({
      readers: [new PeriodicExportingMetricReader({ exporter: this.#metrics, exportIntervalMillis: 3_600_000 })],
    })
    trace.setGlobalTracerProvider(tracers)
    metrics.setGlobalMeterProvider(this.#meters)
    if (carries) {
      context.setGlobalContextManager(new AsyncContextManager())
      propagation.setGlobalPropagator(new W3CTraceContextPropagator())
    }
    onTestFinished(async () => {
      for (const api of [trace, metrics, context, propagation]) api.disable()
      await Promise.all([tracers.shutdown(), this.#meters.shutdown()])
    })
  }

  spans(name?: string): SeenSpan[] {
    return this.#spans
      .getFinishedSpans()
      .map(seen)
      .filter((span) => name === undefined || span.name === name)
  }

  async points(name: string): Promise<SeenPoint[]> {
    return (await this.#newest())
      .filter(({ descriptor }) => descriptor.name === name)
      .flatMap((metric) =>
        metric.dataPointType === DataPointType.HISTOGRAM
          ? (metric as HistogramMetricData).dataPoints.map(({ attributes, value }) => ({
              labels: attributes,
              value: value.sum ?? 0,
              count: value.count,
            }))
          : metric.dataPoints.map(({ attributes, value }) => ({
              labels: attributes,
              value: value as number,
              count: 1,
            })),
      )
  }

  /** All exported data, as text. */
  async exported(): Promise<string> {
    const spans = this.#spans.getFinishedSpans().map(({ name, attributes, events, links, status, resource }) => ({
      name,
      attributes,
      events,
      links,
      status,
      resource: resource.attributes,
    }))
    return JSON.stringify([spans, await this.#newest()])
  }

  async #newest() {
    this.#metrics.reset()
    await this.#meters.forceFlush()
    return this.#metrics.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics))
  }
}

function seen(span: ReadableSpan): SeenSpan {
  const { name, kind, attributes, status, parentSpanContext, startTime, endTime } = span
  const { spanId, traceId } = span.spanContext()
  return {
    name,
    kind: kind === SpanKind.CLIENT ? 'client' : 'internal',
    id: spanId,
    trace: traceId,
    parent: parentSpanContext?.spanId ?? null,
    attributes,
    isError: status.code === SpanStatusCode.ERROR,
    startedAt: startTime[0] * 1e3 + startTime[1] / 1e6,
    endedAt: endTime[0] * 1e3 + endTime[1] / 1e6,
  }
}

/** Equivalent of `@opentelemetry/context-async-hooks`. */
class AsyncContextManager implements ContextManager {
  readonly #storage = new AsyncLocalStorage<Context>()
  active(): Context {
    return this.#storage.getStore() ?? ROOT_CONTEXT
  }
  with<A extends unknown[], F extends (...args: A) => ReturnType<F>>(
    carried: Context,
    act: F,
    self?: ThisParameterType<F>,
    ...args: A
  ): ReturnType<F> {
    return this.#storage.run(carried, () => act.call(self as never, ...args))
  }
  bind<T>(_carried: Context, target: T): T {
    return target
  }
  enable(): this {
    return this
  }
  disable(): this {
    return this
  }
}
