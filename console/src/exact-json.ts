/** Like JSON.parse, but keeps integers beyond the safe range as text. */
export function parseExact(text: string): unknown {
  return JSON.parse(text, revive as Parameters<typeof JSON.parse>[1])
}

function revive(_name: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== 'number' || context?.source === undefined) return value
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? new ExactNumber(context.source) : value
}

/** An integer that a double cannot represent. */
export class ExactNumber {
  readonly source: string

  constructor(source: string) {
    this.source = source
  }

  toString(): string {
    return this.source
  }

  toJSON(): unknown {
    return 'rawJSON' in JSON
      ? (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(this.source)
      : this.source
  }
}
