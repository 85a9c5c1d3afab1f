import type { Clock } from '../../../contract/index.ts'
import { parseDuration } from '../jinja/duration.ts'
import { PyTimeDelta } from '../jinja/duration.ts'
import { compilePattern } from '../jinja/regex.ts'
import { components, isRecord, type Component } from '../manifest/component.ts'
import type { Run } from './run.ts'

/** Requests that were sent and when, per rate of a policy, for one manifest in this process. */
export class CallBudget {
  readonly #sent = new Map<string, number[]>()

  /** Waits until the budget allows a request, on the clock of the context. */
  async wait(budget: Component | null, request: { method: string; url: URL }, run: Run): Promise<void> {
    if (budget === null) return
    const { clock, signal } = run.context
    for (const [index, policy] of components(budget.policies).entries()) {
      if (!matchesPolicy(policy, request, run)) continue
      for (const [limit, intervalMs] of listRates(policy, run))
        await this.#waitForRate(`${index}:${limit}:${intervalMs}`, limit, intervalMs, clock, signal)
      return
    }
  }

  async #waitForRate(
    name: string,
    limit: number,
    intervalMs: number,
    clock: Clock,
    signal: AbortSignal,
  ): Promise<void> {
    const sent = this.#sent.get(name) ?? []
    this.#sent.set(name, sent)
    for (;;) {
      const now = clock.now()
      while (sent.length > 0 && (sent[0] ?? 0) <= now - intervalMs) sent.shift()
      const oldest = sent[0]
      if (sent.length < limit || oldest === undefined) {
        sent.push(now)
        return
      }
      await clock.sleep(oldest + intervalMs - now, signal)
    }
  }
}

/** A fixed window is kept as a moving one, which is never less strict. */
function listRates(policy: Component, run: Run): [limit: number, intervalMs: number][] {
  const rates =
    policy.type === 'FixedWindowCallRatePolicy'
      ? [{ type: 'Rate', limit: policy.call_limit, interval: policy.period }]
      : Array.isArray(policy.rates)
        ? policy.rates.filter(isRecord)
        : []
  return rates.flatMap((rate) => {
    const limit = run.number(rate.limit, policy)
    const interval = typeof rate.interval === 'string' ? parseDuration(run.text(rate.interval, policy)) : null
    if (limit === null || limit < 1 || !(interval instanceof PyTimeDelta)) return []
    return [[limit, Number(interval.micros / 1_000n)]]
  })
}

function matchesPolicy(policy: Component, { method, url }: { method: string; url: URL }, run: Run): boolean {
  const matchers = Array.isArray(policy.matchers) ? policy.matchers.filter(isRecord) : []
  return (
    matchers.length === 0 ||
    matchers.some((matcher) => {
      if (typeof matcher.method === 'string' && matcher.method.toUpperCase() !== method) return false
      if (typeof matcher.url_base === 'string') {
        const base = run.text(matcher.url_base, policy)
        if (URL.canParse(base) && new URL(base).origin !== url.origin) return false
      }
      return (
        typeof matcher.url_path_pattern !== 'string' ||
        compilePattern(run.text(matcher.url_path_pattern, policy)).test(url.pathname)
      )
    })
  )
}
