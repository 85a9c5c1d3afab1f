import { required } from './required.ts'
/** `PT5M`, `PT1H30M`, `P1D`; null for any other text. */
export function parseDurationMs(text: string): number | null {
  const match = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/.exec(text)
  if (match === null || /[PT]$/.test(text)) return null
  const [, days = '0', hours = '0', minutes = '0', seconds = '0'] = match
  return (((Number(days) * 24 + Number(hours)) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1_000
}

const DISPLAY_UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const

/** Formats the two largest units: `4m 10s`, `2d 3h`. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))}ms`
  const first = DISPLAY_UNITS.findIndex(([, unitMs]) => ms >= unitMs)
  const [unit, unitMs] = required(DISPLAY_UNITS[first], 'display unit')
  const whole = Math.floor(ms / unitMs)
  const next = DISPLAY_UNITS[first + 1]
  const rest = next === undefined ? 0 : Math.floor((ms - whole * unitMs) / next[1])
  return rest === 0 || next === undefined ? `${whole}${unit}` : `${whole}${unit} ${rest}${next[0]}`
}
