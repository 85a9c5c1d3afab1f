/** Aborts with either signal. The same signal twice stays as it is, because `AbortSignal.any` is costly. */
export function combineSignals(signal: AbortSignal, other: AbortSignal | null | undefined): AbortSignal {
  return other === null || other === undefined || other === signal ? signal : AbortSignal.any([signal, other])
}
