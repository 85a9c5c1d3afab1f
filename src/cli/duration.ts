const UNITS = [['d', 86_400_000], ['h', 3_600_000], ['m', 60_000], ['s', 1_000]] as const

/** The two largest units: `4m 10s`, `2d 3h`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))}ms`
  const first = UNITS.findIndex(([, unitMs]) => ms >= unitMs)
  const [unit, unitMs] = UNITS[first]!
  const whole = Math.floor(ms / unitMs)
  const next = UNITS[first + 1]
  const rest = next === undefined ? 0 : Math.floor((ms - whole * unitMs) / next[1])
  return rest === 0 || next === undefined ? `${whole}${unit}` : `${whole}${unit} ${rest}${next[0]}`
}

export function ago(at: number, now: number): string {
  return at > now ? `in ${duration(at - now)}` : now - at < 1_000 ? 'just now' : `${duration(now - at)} ago`
}
