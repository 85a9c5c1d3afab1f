import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { runCycle } from '../../src/engine/cycle.ts'
import { flipFlop, keyset, streams } from '../../src/strategies/index.ts'
import { createLoader } from '../planted/create-loader.ts'
import { patchText } from '../planted/patch-text.ts'
import { runWorld, type Code, type WorldKind } from './tidemark-world.ts'

const CODE: Code = { runCycle, flipFlop, keyset, streams }
const SEEDS = 15

async function firstBroken(kind: WorldKind, code: Code, seeds = SEEDS): Promise<string | null> {
  for (let seed = 1; seed <= seeds; seed++) {
    const broken = await runWorld(kind, seed, code)
    if (broken !== null) return `seed ${seed}: ${broken}`
  }
  return null
}

describe('invariant 12: after every commit, no row with a time up to the tidemark is missing or older', () => {
  test.each(['keyset', 'streams', 'flipFlop', 'turns', 'listing', 'unordered'] satisfies WorldKind[])(
    '%s',
    async (kind) => {
      expect(await firstBroken(kind, CODE)).toBeNull()
    },
    120_000,
  )
})

const MUTANTS: readonly { name: string; kind: WorldKind; file: string; find: string; replace: string }[] = [
  {
    name: 'the time of a deletion moves the tidemark',
    kind: 'turns',
    file: 'engine/page-preparer.ts',
    find: "if (change.type === 'upsert') {\n        if (serialized === null)",
    replace:
      "if (prepared.upstreamAt !== null && (newest === null || prepared.upstreamAt > newest)) newest = prepared.upstreamAt\n      if (change.type === 'upsert') {\n        if (serialized === null)",
  },
  {
    name: 'the latest of the streams instead of the earliest',
    kind: 'flipFlop',
    file: 'strategies/kit/earliest-tidemark.ts',
    find: 'instant < earliest',
    replace: 'instant > earliest',
  },
  {
    name: 'the same, within one cycle',
    kind: 'streams',
    file: 'strategies/kit/earliest-tidemark.ts',
    find: 'instant < earliest',
    replace: 'instant > earliest',
  },
  {
    name: 'a page of a listing moves the tidemark',
    kind: 'listing',
    file: 'engine/cycle-tidemark.ts',
    find: "if (mode === 'replace' || this.isIncomplete) return this",
    replace:
      "if (mode === 'replace') return new CycleTidemark(this.#committed, null, later(this.current, newest), this.#bound)",
  },
  {
    name: 'a listing is complete up to its newest row',
    kind: 'listing',
    file: 'engine/cycle-tidemark.ts',
    find: 'page.stated === undefined ? since :',
    replace: 'page.stated === undefined ? (page.newest ?? since) :',
  },
  {
    name: 'a derived tidemark goes beyond the start of the cycle',
    kind: 'unordered',
    file: 'engine/cycle-tidemark.ts',
    find: 'earlier(candidate, since)',
    replace: 'candidate',
  },
  {
    name: 'a derived tidemark moves before the cycle is complete',
    kind: 'unordered',
    file: 'engine/cycle-tidemark.ts',
    find: 'stated === null || stated === undefined ? this.current :',
    replace: 'stated === undefined ? later(this.current, newest) : stated === null ? this.current :',
  },
  {
    name: 'a cursor is taken for the end of its moment',
    kind: 'keyset',
    file: 'strategies/keyset.ts',
    find: "subtractMicrosecond(requireInstant(last.timestamp, 'The cursor'))",
    replace: "requireInstant(last.timestamp, 'The cursor')",
  },
]

test.each(MUTANTS)(
  'a planted bug is found: $name',
  async ({ kind, file, find, replace }) => {
    const home = await mkdtemp(join(tmpdir(), 'tidemark-mutant-'))
    try {
      await cp(resolve('src'), join(home, 'src'), { recursive: true })
      await symlink(resolve('node_modules'), join(home, 'node_modules'))
      await writeFile(join(home, 'package.json'), '{ "type": "module" }')
      const text = await readFile(join(home, 'src', file), 'utf8')
      await writeFile(join(home, 'src', file), patchText(text, find, replace))
      const jiti = createLoader(home, { moduleCache: true })
      const engine = await jiti.import<Pick<Code, 'runCycle'>>(join(home, 'src/engine/cycle.ts'))
      const strategies = await jiti.import<Omit<Code, 'runCycle'>>(join(home, 'src/strategies/index.ts'))
      expect(await firstBroken(kind, { ...strategies, runCycle: engine.runCycle }, 60)).not.toBeNull()
    } finally {
      await rm(home, { recursive: true, force: true })
    }
  },
  120_000,
)
