/**
 * Detects code under test that uses the real clock, real timers or real randomness. The calls still work, because the
 * simulation's host needs them, but one that comes from the engine, a source or a store is a finding.
 */
export function installNondeterminismGuard(): { tripped(): string[]; remove(): void } {
  const found = new Set<string>()
  const originals = PATCHED_FUNCTIONS.map(
    ([owner, name]) => [owner, name, Reflect.get(owner, name) as Patched] as const,
  )
  for (const [owner, name, original] of originals) {
    Reflect.set(owner, name, function watched(this: unknown, ...args: unknown[]): unknown {
      const culprit = new Error().stack?.split('\n')[2] ?? ''
      if (/[/\\](engine|registry|strategies|sources|stores)[/\\]/.test(culprit))
        found.add(`${name} was called ${culprit.trim()}`)
      return Reflect.apply(original, this, args)
    })
  }
  return {
    tripped: () => {
      const messages = [...found]
      found.clear()
      return messages
    },
    remove: () => {
      for (const [owner, name, original] of originals) Reflect.set(owner, name, original)
    },
  }
}

type Patched = (...args: unknown[]) => unknown

const PATCHED_FUNCTIONS: ReadonlyArray<readonly [object, string]> = [
  [Date, 'now'],
  [Math, 'random'],
  [performance, 'now'],
  [globalThis, 'setTimeout'],
  [globalThis, 'setInterval'],
]
