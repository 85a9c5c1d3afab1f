import type { WorldResult } from '../../src/testing/simulation/campaign.ts'
import { runWorld, type WorldOptions } from '../../src/testing/simulation/world.ts'
import type { WorldConfig, WorldKind } from '../../src/testing/simulation/world-config.ts'
import type { CycleResult } from '../../src/engine/cycle-options.ts'

export interface Worlds {
  readonly kinds: readonly WorldKind[]
  readonly seeds: number
  readonly overrides: Partial<WorldConfig>
  readonly onStart?: WorldOptions['onStart']
  readonly beforeHeal?: WorldOptions['beforeHeal']
}

export interface Observed {
  readonly broken: ReadonlyArray<{ readonly seed: number; readonly oracle: string; readonly message: string }>
  /** "kind label" → count. */
  readonly marks: ReadonlyMap<string, number>
  readonly results: ReadonlyArray<CycleResult & { readonly requests: number }>
  readonly verdicts: readonly WorldResult[]
}

/** The share of the worlds of a rule that run; `npm run campaign:sim` runs ten times as many as are written there. */
const SHARE = Number(process.env['TIDEMARK_RULE_SHARE'] ?? 0.5)

/** Worlds with chosen conditions, and all observations. */
export async function observe({ kinds, seeds, overrides, onStart, beforeHeal }: Worlds): Promise<Observed> {
  const broken: Array<{ seed: number; oracle: string; message: string }> = []
  const marks = new Map<string, number>()
  const results: Array<CycleResult & { requests: number }> = []
  const verdicts: WorldResult[] = []
  for (let seed = 1; seed <= Math.ceil(seeds * SHARE); seed++) {
    const verdict = await runWorld({
      seed,
      kind: kinds[seed % kinds.length]!,
      overrides,
      onResult: (result, requests) => void results.push({ ...result, requests }),
      ...(onStart && { onStart }),
      ...(beforeHeal && { beforeHeal }),
    })
    verdicts.push(verdict)
    for (const { oracle, message } of verdict.violations) broken.push({ seed, oracle, message })
    for (const { kind, label } of verdict.faults)
      marks.set(`${kind} ${label}`, (marks.get(`${kind} ${label}`) ?? 0) + 1)
  }
  return { broken, marks, results, verdicts }
}
