import type { Fault, FaultKind } from './fault-injector.ts'
import { hashOf } from './random-stream.ts'
import { required } from '../../values/required.ts'
import { shrink, type ShrinkResult } from './shrink.ts'
import type { StoreOracle, Violation } from './store-oracle.ts'
import { installNondeterminismGuard } from './nondeterminism-guard.ts'

/** One world from its first record to its verdict: a pure function of its seed and of the faults that are kept. */
export type RunSeed = (seed: number, only?: ReadonlySet<string>) => Promise<WorldResult>

export interface WorldResult {
  readonly seed: number
  /** The kind of world. */
  readonly kind: string
  readonly hash: string
  readonly faults: readonly Fault[]
  readonly violations: readonly Violation[]
  readonly steps: number
  readonly virtualMs: number
  readonly cycles: number
  readonly requests: number
  /** Commit outcomes, counted. */
  readonly outcomes: StoreOracle<any>['outcomes']
  /** All rows at the end, as text. */
  readonly rows: string
  /** The last events, oldest first. */
  readonly trail: readonly string[]
}

export interface CampaignOptions {
  /** Number of worlds. */
  readonly seeds: number
  readonly firstSeed?: number
  /** Stop after this long, even if worlds are left. Makes the digest depend on the machine. */
  readonly seconds?: number
  /** Stop at the first failure; true when absent. */
  readonly stopOnFailure?: boolean
  /** Shrink a failure to the fewest faults; true when absent. */
  readonly shrinks?: boolean
  readonly onProgress?: (progress: { done: number; of: number; faults: number; failures: number }) => void
}

/** The result of a simulation over many seeds. */
export interface SimulationReport {
  readonly seeds: number
  readonly firstSeed: number
  readonly perSecond: number
  readonly virtualHours: number
  readonly steps: number
  readonly cycles: number
  /** Kind of world → count. */
  readonly worldsByKind: Readonly<Record<string, number>>
  readonly requests: number
  readonly faults: number
  /** Kind → label → count. */
  readonly faultsByPlace: Readonly<Record<string, Readonly<Record<string, number>>>>
  /** Kinds that were never injected; a report with any of these proves less than it appears to. */
  readonly kindsNeverHit: readonly string[]
  /** Worlds run a second time to check that they are deterministic. */
  readonly repeated: number
  readonly failures: readonly SimulationFailure[]
  /** Digest of the hashes of all worlds, in order: equal digests mean equal runs. */
  readonly digest: string
  /** The statistical confidence that the absence of failures supports. */
  readonly sentence: string
}

/** A failed seed, with the fewest faults that still reproduce it. */
export interface SimulationFailure extends ShrinkResult {
  readonly seed: number
  readonly kind: string
  readonly oracle: string
  readonly message: string
  readonly trail: readonly string[]
}

/**
 * Runs many worlds, one per seed. A finding consists of a seed, the invariant that broke, and the fewest faults that
 * break it.
 */
export async function runCampaign(
  options: CampaignOptions,
  kinds: readonly FaultKind[],
  run: RunSeed,
): Promise<SimulationReport> {
  const { seeds, firstSeed = 1, stopOnFailure = true, shrinks = true } = options
  const startedAt = performance.now()
  const faultsByPlace: Record<string, Record<string, number>> = {}
  const worldsByKind: Record<string, number> = {}
  const failures: SimulationFailure[] = []
  let [done, steps, virtualMs, cycles, requests, faults, repeated, digest] = [0, 0, 0, 0, 0, 0, 0, 0]
  const wire = installNondeterminismGuard()
  try {
    for (let seed = firstSeed; seed < firstSeed + seeds; seed++) {
      if (options.seconds !== undefined && (performance.now() - startedAt) / 1_000 > options.seconds) break
      const verdict = await run(seed)
      const violations = [
        ...verdict.violations,
        ...wire.tripped().map((message) => ({ oracle: 'ports', message, atMs: 0 })),
      ]
      // One world in a hundred is run twice: a world that is not deterministic cannot be reproduced from its seed.
      if (hashOf(seed, 'repeat') % 100 === 0) {
        repeated++
        const again = await run(seed)
        if (again.hash !== verdict.hash)
          violations.push({
            oracle: 'determinism',
            message: `the hash was ${verdict.hash}, then ${again.hash}`,
            atMs: 0,
          })
        // O15: without faults, the same world reaches the same final rows.
        const twin = await run(seed, new Set())
        if (verdict.violations.length === 0 && twin.rows !== verdict.rows)
          violations.push({
            oracle: 'O15',
            message: 'the final rows are not those of the same world without faults',
            atMs: 0,
          })
      }
      done++
      worldsByKind[verdict.kind] = (worldsByKind[verdict.kind] ?? 0) + 1
      steps += verdict.steps
      virtualMs += verdict.virtualMs
      cycles += verdict.cycles
      requests += verdict.requests
      faults += verdict.faults.length
      digest = hashOf(digest, verdict.hash)
      for (const fault of verdict.faults) {
        const places = (faultsByPlace[fault.kind] ??= {})
        places[fault.label] = (places[fault.label] ?? 0) + 1
      }
      const [first] = violations
      if (first !== undefined) {
        failures.push({
          seed,
          kind: verdict.kind,
          oracle: first.oracle,
          message: first.message,
          ...(shrinks
            ? await shrink(run, verdict, first.oracle)
            : { faults: verdict.faults.map((fault) => fault.id), trail: verdict.trail }),
        })
        if (stopOnFailure) break
      }
      options.onProgress?.({ done, of: seeds, faults, failures: failures.length })
    }
  } finally {
    wire.remove()
  }
  const seconds = (performance.now() - startedAt) / 1_000
  return {
    seeds: done,
    firstSeed,
    perSecond: done / seconds,
    virtualHours: virtualMs / 3_600_000,
    steps,
    cycles,
    worldsByKind,
    requests,
    faults,
    faultsByPlace,
    kindsNeverHit: kinds.filter((kind) => faultsByPlace[kind] === undefined),
    repeated,
    failures,
    digest: digest.toString(16).padStart(8, '0'),
    sentence: summarizeEvidence(done, faults, failures),
  }
}

function summarizeEvidence(worlds: number, faults: number, failures: readonly SimulationFailure[]): string {
  if (failures.length > 0)
    return `${failures.length} of ${worlds} worlds broke an invariant; the first is seed ${required(failures[0], 'the first failure').seed}.`
  return `No invariant was broken in ${worlds} worlds with ${faults} faults: at 95 % confidence fewer than ${((3 / worlds) * 100).toPrecision(2)} % of worlds like these would break one (3/N).`
}
