import type { AttributeName, Attributes } from '../contract/index.ts'
import { maskSecrets } from '../redaction/known-secrets.ts'

/** The label value for everything beyond the limit. */
export const OTHER_LABEL = 'other'

/** The maximum number of values per label; other labels have few values by design. */
export const LABEL_VALUES_MAX = { syncs: 100, hosts: 20, statuses: 10 } as const

/**
 * Limits the cardinality of metrics: the first values keep their names, and all others share one.
 */
export class LabelLimiter {
  readonly #seen = { syncs: new Set<string>(), hosts: new Set<string>(), statuses: new Set<string>() }

  limit(labels: Attributes): Attributes {
    const {
      'tidemark.worker': worker,
      'tidemark.sync': sync,
      'server.address': host,
      'http.response.status_code': status,
    } = labels
    return {
      ...labels,
      // Replaces both labels or neither: one alone would aggregate unrelated syncs.
      ...(sync !== undefined &&
        !this.#isKnown('syncs', `${worker}\n${sync}`) && {
          'tidemark.worker': OTHER_LABEL,
          'tidemark.sync': OTHER_LABEL,
        }),
      ...(host !== undefined && !this.#isKnown('hosts', String(host)) && { 'server.address': OTHER_LABEL }),
      ...(status !== undefined &&
        !this.#isKnown('statuses', String(status)) && { 'http.response.status_code': OTHER_LABEL }),
    }
  }

  #isKnown(kind: keyof typeof LABEL_VALUES_MAX, value: string): boolean {
    const seen = this.#seen[kind]
    if (seen.has(value)) return true
    if (seen.size >= LABEL_VALUES_MAX[kind]) return false
    seen.add(value)
    return true
  }
}

/** Keeps only the labels of the metric. */
export function pickLabels(names: readonly AttributeName[], labels: Attributes): Attributes {
  return maskAttributes(
    Object.fromEntries(names.flatMap((name) => (labels[name] === undefined ? [] : [[name, labels[name]]]))),
  )
}

/** A host name may contain a key, and a vendor may use a token as a request name. */
export function maskAttributes(attributes: Attributes): Attributes {
  return Object.fromEntries(
    Object.entries(attributes).map(([name, value]) => [name, typeof value === 'string' ? maskSecrets(value) : value]),
  )
}
