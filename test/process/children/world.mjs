// A source that changes from step to step, the same in every process: its records are a function of seed and step.

/** Seeded randomness in [0, 1). */
export function chance(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

export class World {
  #seed
  #keys
  #steps = []

  constructor({ seed, keys }) {
    this.#seed = seed
    this.#keys = keys
  }

  /** key → { alive, revision, changedAt } after this many steps. */
  at(step) {
    for (let next = this.#steps.length; next <= step; next++) {
      const random = chance(this.#seed * 1_000 + next)
      const before = this.#steps[next - 1] ?? new Map()
      const after = new Map(before)
      for (let index = 0; index < this.#keys; index++) {
        const key = `item-${String((index * 7_919) % this.#keys).padStart(5, '0')}`
        const entry = before.get(key)
        const [changes, dies] = [random() < (next === 0 ? 0.8 : 0.15), random() < 0.3]
        if (!changes || (dies && entry?.alive !== true)) continue
        after.set(key, { alive: !dies, revision: (entry?.revision ?? 0) + 1, changedAt: next })
      }
      this.#steps[next] = after
    }
    return this.#steps[step]
  }

  /** All live records, as { key, record }. */
  truth(step) {
    return [...this.at(step)]
      .filter(([, entry]) => entry.alive)
      .map(([key, entry]) => ({ key, record: recordOf(key, entry) }))
  }

  /** A full listing of the live records at `step`. */
  list(step, pageSize) {
    return async (state) => {
      const from = state?.from ?? 0
      const live = [...this.at(step)].filter(([, entry]) => entry.alive)
      const page = live.slice(from, from + pageSize)
      return {
        changes: page.map(([key, entry]) => changeOf(key, entry)),
        hasMore: from + pageSize < live.length,
        nextState: { from: from + pageSize },
      }
    }
  }

  /** Changes after the step of the last cycle, up to `step`. */
  changes(step, pageSize) {
    return async (state) => {
      const { since, from = 0 } = state ?? { since: -1 }
      const changed = [...this.at(step)].filter(([, entry]) => entry.changedAt > since)
      const page = changed.slice(from, from + pageSize)
      const hasMore = from + pageSize < changed.length
      return {
        changes: page.map(([key, entry]) => changeOf(key, entry)),
        hasMore,
        nextState: hasMore ? { since, from: from + pageSize } : { since: step },
      }
    }
  }
}

function changeOf(key, entry) {
  const upstreamUpdatedAt = new Date(Date.UTC(2026, 0, 1) + entry.changedAt * 60_000).toISOString()
  if (!entry.alive) return { type: 'delete', key, upstreamUpdatedAt }
  return { type: 'upsert', key, record: recordOf(key, entry), cursor: `${entry.changedAt}`, upstreamUpdatedAt }
}

function recordOf(key, entry) {
  return {
    id: key,
    revision: entry.revision,
    note: `${key} as of ${entry.revision} `.repeat(6),
    nested: { step: entry.changedAt },
  }
}
