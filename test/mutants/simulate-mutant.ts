import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findCode, renameIn } from '../planted/patch-text.ts'
import type { Mutant } from './mutants.ts'
import type { VendorMutant } from './vendor-mutants.ts'

const run = promisify(execFile)

export interface Seeds {
  readonly firstSeed: number
  readonly seeds: number
}

export interface FoundBug {
  readonly seed: number
  readonly oracle: string
}

/** Simulates the compiled package with one bug planted, in a separate process; null when no seed finds it. */
export async function simulateMutant(
  build: string,
  mutant: Mutant | VendorMutant,
  { firstSeed, seeds }: Seeds,
): Promise<FoundBug | null> {
  const dist = join(build, 'dist')
  const patches = mutant.patches.map(({ file, find, replace }) => ({
    file,
    ...locate(join(dist, file), find, replace),
  }))
  const worlds = isVendorMutant(mutant)
    ? { vendors: mutant.vendors, kinds: mutant.kinds }
    : { worlds: worldsFrom(mutant.worlds, firstSeed) }
  const options = { ...worlds, overrides: mutant.overrides, firstSeed, seeds, shrinks: false }
  const program = join(import.meta.dirname, 'simulate-patched.mjs')
  const job = JSON.stringify({ dist, patches, options })
  const { stdout } = await run(process.execPath, [program, job], { maxBuffer: 2 ** 26 })
  return JSON.parse(stdout) as FoundBug | null
}

export function isVendorMutant<T extends Mutant | VendorMutant>(mutant: T): mutant is T & VendorMutant {
  return 'vendors' in mutant
}

/** The simulation takes the kinds in turn from its first seed; a seed must get the kind it has in a run from seed 1. */
export function worldsFrom<T>(worlds: readonly T[], firstSeed: number): readonly T[] {
  const turn = (firstSeed - 1) % worlds.length
  return [...worlds.slice(turn), ...worlds.slice(0, turn)]
}

/** The patch in the words of the file: the formatter may have wrapped its lines, and names may have changed. */
function locate(file: string, code: string, replacement: string): { find: string; replace: string } {
  const source = readFileSync(file, 'utf8')
  const matches = findCode(source, code)
  const [match] = matches
  if (match !== undefined && matches.length === 1)
    return { find: source.slice(match.start, match.end), replace: renameIn(replacement, match.renames) }
  throw new Error(`The code to replace must occur once in ${file}; it occurs ${matches.length} times: ${code}`)
}
