export interface ServerEvent {
  readonly id: string | null
  readonly event: string
  /** Null for an event with an id only. */
  readonly data: string | null
}

/** Incremental parser: returns complete events and buffers the rest. */
export class EventStreamParser {
  #rest = ''
  #lines: string[] = []

  push(text: string): ServerEvent[] {
    // A final carriage return may be the first half of a CRLF.
    const all = this.#rest + text
    const cut = all.endsWith('\r') ? all.length - 1 : all.length
    const lines = all.slice(0, cut).split(/\r\n|\r|\n/)
    this.#rest = (lines.pop() ?? '') + all.slice(cut)
    const events: ServerEvent[] = []
    for (const line of lines) {
      if (line !== '') this.#lines.push(line)
      else if (this.#lines.length > 0) {
        events.push(parseEvent(this.#lines))
        this.#lines = []
      }
    }
    return events
  }
}

function parseEvent(lines: readonly string[]): ServerEvent {
  let [id, event]: [string | null, string] = [null, 'message']
  const data: string[] = []
  for (const line of lines) {
    const [, name = '', value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? []
    if (name === 'id') id = value
    else if (name === 'event') event = value
    else if (name === 'data') data.push(value)
  }
  return { id, event, data: data.length === 0 ? null : data.join('\n') }
}
