import { beforeAll, expect, test } from 'vitest'
import { simulate } from '../../src/testing/simulation/simulate.ts'
import { simulateVendors } from '../../src/testing/simulation/vendors/simulate-vendors.ts'
import { buildPackage } from '../cli/package.ts'
import type { Mutant } from './mutants.ts'
import { isVendorMutant, simulateMutant, worldsFrom, type Seeds } from './simulate-mutant.ts'
import type { VendorMutant } from './vendor-mutants.ts'

/** `npm run campaign:mutants` searches every bug from seed 1 on, and prints the seed to record as `foundBy`. */
const SEARCHES = process.env['TIDEMARK_MUTANT_SEARCH'] === '1'

/** As many concurrent simulations as a small machine has cores. */
const AT_ONCE = 2

type AnyMutant = Mutant | VendorMutant

interface Finding {
  readonly seed: number
  readonly oracle: string
  /** The simulated seeds; the code without the bug must pass them all. */
  readonly seeds: Seeds
}

/** Each bug must be found by the seed recorded for it, or by a search from seed 1; the unchanged code must pass. */
export function expectMutantsFound(mutants: readonly AnyMutant[]): void {
  const findings = new Map<AnyMutant, Promise<Finding | null>>()

  beforeAll(() => {
    const build = buildPackage()
    // Each waits for the one AT_ONCE before it.
    const started: Array<Promise<unknown>> = []
    for (const mutant of mutants) {
      const finding = (started.at(-AT_ONCE) ?? Promise.resolve()).then(() => find(build, mutant))
      findings.set(mutant, finding)
      // A failure is reported by the test of the mutant, which may start later.
      started.push(finding.catch(() => {}))
    }
  })

  test.each(mutants.map((mutant) => [mutant.name, mutant] as const))(
    '%s',
    async (_, mutant) => {
      const finding = await findings.get(mutant)!
      expect(finding, `${mutant.seeds} seeds with the bug planted`).not.toBeNull()
      const { seed, oracle, seeds } = finding!
      expect(await failuresWithoutBug(mutant, seeds), 'the unchanged code').toEqual([])
      if (seed !== mutant.foundBy)
        console.warn(`"${mutant.name}" is found by seed ${seed} (${oracle}): record it as foundBy`)
    },
    600_000,
  )
}

async function find(build: string, mutant: AnyMutant): Promise<Finding | null> {
  const all = { firstSeed: 1, seeds: mutant.seeds }
  const recorded = { firstSeed: mutant.foundBy, seeds: 1 }
  for (const { firstSeed, seeds } of SEARCHES ? [all] : [recorded, all]) {
    const failure = await simulateMutant(build, mutant, { firstSeed, seeds })
    if (failure !== null) return { ...failure, seeds: { firstSeed, seeds: failure.seed - firstSeed + 1 } }
  }
  return null
}

async function failuresWithoutBug(mutant: AnyMutant, seeds: Seeds): Promise<unknown[]> {
  const options = { ...mutant, ...seeds, shrinks: false }
  const { failures } = isVendorMutant(options)
    ? await simulateVendors(options)
    : await simulate({ ...options, worlds: worldsFrom(options.worlds, seeds.firstSeed) })
  return failures.map(({ seed, oracle, message }) => ({ seed, oracle, message }))
}
