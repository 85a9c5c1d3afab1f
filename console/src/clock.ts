import { useSyncExternalStore } from 'react'

/** The server's clock, estimated from its responses, so that ages are right even if this machine's clock is off. */
let skewMs = 0
let tick = Date.now()
const listeners = new Set<() => void>()
let timer: ReturnType<typeof setInterval> | undefined

export function now(): number {
  return Date.now() + skewMs
}

/** The header has whole seconds, so a difference below two is ignored. */
export function noteServerTime(date: string | null): void {
  if (date === null) return
  const apart = Date.parse(date) + 500 - Date.now()
  if (Number.isFinite(apart)) skewMs = Math.abs(apart) < 2_000 ? 0 : apart
}

/** The time, updated once a second by one shared timer. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => tick)
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  timer ??= setInterval(tickClock, 1_000)
  tick = now()
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

function tickClock(): void {
  tick = now()
  for (const listener of listeners) listener()
}

const COARSE_MS = 10_000

/** The time, updated every ten seconds: for lists that need not be drawn again every second. */
export function useCoarseNow(): number {
  return useSyncExternalStore(subscribe, () => Math.floor(tick / COARSE_MS) * COARSE_MS)
}
