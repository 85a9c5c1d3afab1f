import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Mutant } from './mutants.ts'
import type { VendorMutant } from './vendor-mutants.ts'

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '../..')

export interface Outcome {
  readonly seeds: number
  readonly seconds: number
  readonly failure: { readonly seed: number; readonly oracle: string; readonly message: string } | null
}

/** The package as it is published, built into a folder of its own. */
export class Build {
  readonly #home = mkdtempSync(join(tmpdir(), 'tidemark-mutants-'))

  async make(): Promise<void> {
    symlinkSync(join(ROOT, 'node_modules'), join(this.#home, 'node_modules'))
    writeFileSync(join(this.#home, 'package.json'), '{ "type": "module" }')
    // Types are checked elsewhere; code that has a type error is still emitted.
    await run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', join(ROOT, 'tsconfig.build.json'), '--outDir', join(this.#home, 'dist')], { cwd: ROOT }).catch((error: { stdout?: string }) => {
      if (/src\/(engine|stores\/(kit|sqlite)|testing\/simulation)\//.test(error.stdout ?? '')) throw error
    })
  }

  /** Simulates the build as it is, or a copy with one bug planted. */
  async simulate({ patches = [], name: _name, ...options }: Partial<Mutant> | Partial<VendorMutant>, name = 'unpatched'): Promise<Outcome> {
    const copy = join(this.#home, name.replaceAll(/\W+/g, '-'))
    cpSync(join(this.#home, 'dist'), copy, { recursive: true })
    try {
      for (const { file, find, replace } of patches) patch(join(copy, file), find, replace)
      const { stdout } = await run(process.execPath, [join(import.meta.dirname, 'simulate-copy.mjs'), copy, JSON.stringify(options)], { maxBuffer: 2 ** 26 })
      return JSON.parse(stdout) as Outcome
    } finally {
      rmSync(copy, { recursive: true, force: true })
    }
  }

  remove(): void {
    rmSync(this.#home, { recursive: true, force: true })
  }
}

function patch(file: string, find: string, replace: string): void {
  const text = readFileSync(file, 'utf8')
  const count = text.split(find).length - 1
  if (count !== 1) throw new Error(`The place to patch must occur once in ${file}; it occurs ${count} times: ${find}`)
  writeFileSync(file, text.replace(find, () => replace))
}
