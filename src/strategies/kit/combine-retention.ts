import type { Execute } from '../../contract/index.ts'

/** Of several streams that are read as one: it looks back no further than the stream that forgets first. */
export function combineRetention(...streams: ReadonlyArray<Execute<any>>): Pick<Execute, 'retentionMs' | 'startsAtEnd'> {
  const retentionMs = Math.min(...streams.map((stream) => stream.retentionMs ?? Infinity))
  return {
    ...(retentionMs < Infinity && { retentionMs }),
    ...(streams.some((stream) => stream.startsAtEnd === true) && { startsAtEnd: true }),
  }
}
