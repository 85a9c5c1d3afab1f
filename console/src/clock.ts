import { useSyncExternalStore } from 'react'

/** The server's clock, as far as its answers tell: what it says happened a second ago did, whatever this machine's clock shows. */
let skewMs = 0
let tick = Date.now()
const listeners = new Set<() => void>()
let timer: ReturnType<typeof setInterval> | undefined

export function now(): number {
  return Date.now() + skewMs
}

/** The header has whole seconds, so less than two apart is no difference. */
export function noteServerTime(date: string | null): void {
  if (date === null) return
  const apart = Date.parse(date) + 500 - Date.now()
  if (Number.isFinite(apart)) skewMs = Math.abs(apart) < 2_000 ? 0 : apart
}

/** The time, once a second, for whoever shows how long ago something was. One timer for all. */
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
