import type { Execute } from '../../contract/index.ts'

/** Streams read as one retain only as much history as the stream with the shortest retention. */
export function combineRetention(
  ...streams: ReadonlyArray<Execute<any>>
): Pick<Execute, 'retentionMs' | 'startsAtEnd'> {
  const retentionMs = Math.min(...streams.map((stream) => stream.retentionMs ?? Infinity))
  return {
    ...(retentionMs < Infinity && { retentionMs }),
    ...(streams.some((stream) => stream.startsAtEnd === true) && { startsAtEnd: true }),
  }
}
