import type { RunSeed, WorldResult } from './campaign.ts'

export interface ShrinkResult {
  /** The fewest faults found that still break the same invariant; empty when it breaks without any. */
  readonly faults: readonly string[]
  readonly trail: readonly string[]
}

const RUNS_MAX = 80

/** Removes faults, halves first and single ones last, while the same invariant is still broken. */
export async function shrink(run: RunSeed, verdict: WorldResult, oracle: string): Promise<ShrinkResult> {
  let ids = verdict.faults.map((fault) => fault.id)
  let { trail } = verdict
  if (verdict.violations[0]?.oracle !== oracle) return { faults: ids, trail }
  let [size, at] = [ids.length, 0]
  for (let runs = 0; runs < RUNS_MAX && size >= 1; runs++) {
    const kept = [...ids.slice(0, at), ...ids.slice(at + size)]
    const again = await run(verdict.seed, new Set(kept))
    if (again.violations[0]?.oracle === oracle) [ids, trail] = [kept, again.trail]
    else at += size
    if (at >= ids.length) [size, at] = [size === 1 ? 0 : Math.ceil(size / 2), 0]
  }
  const kinds = new Map(verdict.faults.map((fault) => [fault.id, fault.kind]))
  return { faults: ids.map((id) => `${kinds.get(id)} at ${id}`), trail }
}
