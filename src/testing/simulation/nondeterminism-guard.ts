/**
 * Detects code under test that uses the real clock, real timers or real randomness. The calls still work, because the
 * simulation's host needs them, but one that comes from the engine, a source or a store is a finding.
 */
export function installNondeterminismGuard(): { tripped(): string[]; remove(): void } {
  const found = new Set<string>()
  const originals = PATCHED_FUNCTIONS.map(([owner, name]) => [owner, name, owner[name]] as const)
  for (const [owner, name, original] of originals) {
    owner[name] = function watched(this: unknown, ...args: unknown[]): unknown {
      const culprit = new Error().stack?.split('\n')[2] ?? ''
      if (/[/\\](engine|registry|strategies|sources|stores)[/\\]/.test(culprit))
        found.add(`${name} was called ${culprit.trim()}`)
      return Reflect.apply(original as (...args: unknown[]) => unknown, this, args)
    }
  }
  return {
    tripped: () => {
      const messages = [...found]
      found.clear()
      return messages
    },
    remove: () => {
      for (const [owner, name, original] of originals) owner[name] = original
    },
  }
}

type PatchedObject = Record<string, unknown>

const PATCHED_FUNCTIONS: ReadonlyArray<readonly [PatchedObject, string]> = [
  [Date as unknown as PatchedObject, 'now'],
  [Math as unknown as PatchedObject, 'random'],
  [performance as unknown as PatchedObject, 'now'],
  [globalThis as unknown as PatchedObject, 'setTimeout'],
  [globalThis as unknown as PatchedObject, 'setInterval'],
]
