/**
 * Tells when code under test reaches for the real clock, real timers or real chance. The calls still work (whoever runs
 * the simulation needs them), but one that comes from the engine, a source or a store is a finding.
 */
export function tripWire(): { tripped(): string[]; remove(): void } {
  const found = new Set<string>()
  const originals = WATCHED.map(([owner, name]) => [owner, name, owner[name]] as const)
  for (const [owner, name, original] of originals) {
    owner[name] = function watched(this: unknown, ...args: unknown[]): unknown {
      const culprit = new Error().stack?.split('\n')[2] ?? ''
      if (/[/\\](engine|registry|strategies|sources|stores)[/\\]/.test(culprit)) found.add(`${name} was called ${culprit.trim()}`)
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

type Owner = Record<string, unknown>

const WATCHED: ReadonlyArray<readonly [Owner, string]> = [
  [Date as unknown as Owner, 'now'],
  [Math as unknown as Owner, 'random'],
  [performance as unknown as Owner, 'now'],
  [globalThis as unknown as Owner, 'setTimeout'],
  [globalThis as unknown as Owner, 'setInterval'],
]
