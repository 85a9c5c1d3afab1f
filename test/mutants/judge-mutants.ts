import { afterAll, beforeAll, expect, test } from 'vitest'
import { Build, type Outcome } from './mutate.ts'
import type { Mutant } from './mutants.ts'
import type { VendorMutant } from './vendor-mutants.ts'

interface Judged {
  readonly patched: Outcome
  readonly unpatched: Outcome
}

/** Would the simulation notice? Each bug is planted in a copy of the compiled package, and must be found by its seeds; the code as it is must pass the same ones. */
export function judgeMutants(mutants: ReadonlyArray<Mutant | VendorMutant>): void {
  const build = new Build()
  const outcomes = new Map<Mutant | VendorMutant, Promise<Judged>>()

  beforeAll(async () => {
    await build.make()
    // Two at a time, as many as a small machine has cores.
    const queue = [...mutants]
    const settle = new Map<Mutant | VendorMutant, (outcome: Promise<Judged>) => void>()
    for (const mutant of mutants) {
      const outcome = new Promise<Judged>((resolve) => void settle.set(mutant, resolve))
      // Told by its own test, which may come later.
      outcome.catch(() => {})
      outcomes.set(mutant, outcome)
    }
    for (let worker = 0; worker < 2; worker++) void work()

    async function work(): Promise<void> {
      for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
        const both = judge(mutant)
        settle.get(mutant)!(both)
        await both.catch(() => {})
      }
    }
  }, 300_000)

  afterAll(() => build.remove())

  async function judge(mutant: Mutant | VendorMutant): Promise<Judged> {
    const patched = await build.simulate(mutant, mutant.name)
    // The same worlds without the bug, up to the one that found it.
    return { patched, unpatched: await build.simulate({ ...mutant, patches: [], seeds: patched.seeds }, `${mutant.name} not`) }
  }

  test.each(mutants.map((mutant) => [mutant.name, mutant] as const))('%s', async (_, mutant) => {
    const { patched, unpatched } = await outcomes.get(mutant)!
    expect(unpatched.failure, 'the code as it is').toBeNull()
    expect(patched.failure, `${patched.seeds} seeds with the bug planted`).not.toBeNull()
    console.info(`seed ${patched.failure!.seed}: ${patched.failure!.oracle}`)
  }, 300_000)
}
