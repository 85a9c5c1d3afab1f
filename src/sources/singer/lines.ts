/** A line of output; null if it exceeds the size limit. `isUnterminated` marks a last line without a newline. */
export interface TapLine {
  readonly text: string | null
  readonly isUnterminated: boolean
}

/** A record may have 5 MB; a whole message stays below this. */
const LINE_BYTES_MAX = 16_000_000

const NEWLINE = 10

/** Yields complete lines as they arrive, without blank ones. */
export async function* readLines(stream: AsyncIterable<Buffer>): AsyncGenerator<readonly TapLine[]> {
  let parts: Buffer[] = []
  let size = 0
  const finish = (isUnterminated: boolean): TapLine => {
    const line = { text: size > LINE_BYTES_MAX ? null : Buffer.concat(parts).toString(), isUnterminated }
    parts = []
    size = 0
    return line
  }
  const keep = (part: Buffer): void => {
    size += part.length
    if (size <= LINE_BYTES_MAX) parts.push(part)
    else parts = []
  }
  for await (const chunk of stream) {
    const lines: TapLine[] = []
    let from = 0
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
      keep(chunk.subarray(from, at))
      lines.push(finish(false))
      from = at + 1
    }
    keep(chunk.subarray(from))
    const present = lines.filter(isNotBlank)
    if (present.length > 0) yield present
  }
  if (size === 0) return
  const last = finish(true)
  if (isNotBlank(last)) yield [last]
}

function isNotBlank({ text }: TapLine): boolean {
  return text === null || text.trim() !== ''
}
