import { runWorld, type Verdict, type WorldOptions } from './world.ts'

export interface Shrunk {
  /** The fewest faults found that still break the same promise; empty when it breaks without any. */
  readonly faults: readonly string[]
  readonly trail: readonly string[]
}

const RUNS_MAX = 80

/** Leaves faults out, halves first and single ones last, for as long as the same promise is still broken. */
export async function shrink(world: WorldOptions, verdict: Verdict, oracle: string): Promise<Shrunk> {
  let ids = verdict.faults.map((fault) => fault.id)
  let { trail } = verdict
  let runs = 0
  const stillFails = async (kept: readonly string[]): Promise<boolean> => {
    runs++
    const again = await runWorld({ ...world, only: new Set(kept) })
    if (again.violations[0]?.oracle !== oracle) return false
    trail = again.trail
    return true
  }
  if (verdict.violations[0]?.oracle !== oracle) return { faults: ids, trail }
  for (let size = ids.length; size >= 1 && runs < RUNS_MAX; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < ids.length && runs < RUNS_MAX; ) {
      const kept = [...ids.slice(0, at), ...ids.slice(at + size)]
      if (await stillFails(kept)) ids = kept
      else at += size
    }
  }
  const kinds = new Map(verdict.faults.map((fault) => [fault.id, fault.kind]))
  return { faults: ids.map((id) => `${kinds.get(id)} at ${id}`), trail }
}
