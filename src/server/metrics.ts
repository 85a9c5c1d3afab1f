import { Counter, Gauge, Histogram, Registry } from 'prom-client'

/** Labels have few values, whatever is asked: a route by its pattern, a status by its class. Nobody's names (XF16). */
export class Metrics {
  readonly #registry = new Registry()
  readonly #requests = new Counter({ name: 'tidemark_http_requests_total', help: 'Requests answered.', labelNames: ['route', 'status'], registers: [this.#registry] })
  readonly #seconds = new Histogram({
    name: 'tidemark_http_request_seconds', help: 'Time to answer.', labelNames: ['route'], buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10], registers: [this.#registry],
  })
  readonly #syncs = new Gauge({ name: 'tidemark_syncs', help: 'Syncs by health.', labelNames: ['health'], registers: [this.#registry] })
  readonly #position = new Gauge({ name: 'tidemark_feed_position', help: 'The newest sequence of the feed.', registers: [this.#registry] })

  /** Found once, so that noting costs next to nothing. */
  readonly #series = new Map<string, { requests: Counter.Internal; seconds: Histogram.Internal<'route'> }>()

  note(route: string, status: number, seconds: number): void {
    const name = `${route} ${Math.floor(status / 100)}xx`
    let series = this.#series.get(name)
    if (series === undefined) {
      series = { requests: this.#requests.labels(route, `${Math.floor(status / 100)}xx`), seconds: this.#seconds.labels(route) }
      this.#series.set(name, series)
    }
    series.requests.inc()
    series.seconds.observe(seconds)
  }

  get contentType(): string {
    return this.#registry.contentType
  }

  text(healths: Readonly<Record<string, number>>, position: number): Promise<string> {
    for (const [health, count] of Object.entries(healths)) this.#syncs.set({ health }, count)
    this.#position.set(position)
    return this.#registry.metrics()
  }
}
