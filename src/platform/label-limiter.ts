import type { AttributeName, Attributes } from '../contract/index.ts'
import { maskSecrets } from '../redaction/known-secrets.ts'

/** What all the rest is called. */
export const OTHER_LABEL = 'other'

/** How many values of these labels are told apart; the others of the contract have few by themselves. */
export const LABEL_VALUES_MAX = { syncs: 100, hosts: 20, statuses: 10 } as const

/**
 * Keeps the number of series bounded, whatever is declared, asked or answered: the first so many keep their names, and all
 * others share one.
 */
export class LabelLimiter {
  readonly #seen = { syncs: new Set<string>(), hosts: new Set<string>(), statuses: new Set<string>() }

  limit(labels: Attributes): Attributes {
    const { 'tidemark.worker': worker, 'tidemark.sync': sync, 'server.address': host, 'http.response.status_code': status } = labels
    return {
      ...labels,
      // Both or neither: half a name would add up what has nothing to do with each other.
      ...(sync !== undefined && !this.#isKnown('syncs', `${worker}\n${sync}`) && { 'tidemark.worker': OTHER_LABEL, 'tidemark.sync': OTHER_LABEL }),
      ...(host !== undefined && !this.#isKnown('hosts', String(host)) && { 'server.address': OTHER_LABEL }),
      ...(status !== undefined && !this.#isKnown('statuses', String(status)) && { 'http.response.status_code': OTHER_LABEL }),
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

/** Only those that the figure is told by. */
export function pickLabels(names: readonly AttributeName[], labels: Attributes): Attributes {
  return maskAttributes(Object.fromEntries(names.flatMap((name) => (labels[name] === undefined ? [] : [[name, labels[name]]]))))
}

/** A host may be a key, and a vendor may call a request by the token that it came with. */
export function maskAttributes(attributes: Attributes): Attributes {
  return Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, typeof value === 'string' ? maskSecrets(value) : value]))
}
