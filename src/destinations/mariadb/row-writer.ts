const TAB = 9
const NEWLINE = 10
const BACKSLASH = 92
const SHORT_TEXT = 40
const NULL_FIELD = Buffer.from('\\N')
const ESCAPED = /[\t\n\\\0]/
const ESCAPES: Record<string, string> = { '\t': '\\t', '\n': '\\n', '\\': '\\\\', '\0': '\\0' }

/** Rows as LOAD DATA reads them by default: fields end with a tab, rows with a newline, and a backslash escapes. */
export class RowWriter {
  #buffer = Buffer.allocUnsafe(1 << 20)
  #at = 0

  /** Writes a field, or null, with the tab or newline that ends it. */
  field(text: string | null, isLast: boolean): void {
    const end = isLast ? NEWLINE : TAB
    if (text === null) {
      this.#ensure(3)
      this.#buffer.set(NULL_FIELD, this.#at)
      this.#at += 2
    } else this.#write(text)
    this.#buffer[this.#at++] = end
  }

  get length(): number {
    return this.#at
  }

  /** The rows in parts of at most this many bytes. A part may end within a row. */
  toChunks(bytesMax: number): Buffer[] {
    const chunks: Buffer[] = []
    for (let from = 0; from < this.#at; from += bytesMax)
      chunks.push(this.#buffer.subarray(from, Math.min(from + bytesMax, this.#at)))
    return chunks
  }

  #write(text: string): void {
    const { length } = text
    this.#ensure(1 + length * 3)
    if (length <= SHORT_TEXT) {
      // For a short text, a native call costs more than this loop.
      const buffer = this.#buffer
      let at = this.#at
      let n = 0
      for (; n < length; n++) {
        const code = text.charCodeAt(n)
        if (code >= 0x80 || code === TAB || code === NEWLINE || code === BACKSLASH || code === 0) break
        buffer[at++] = code
      }
      if (n === length) {
        this.#at = at
        return
      }
    }
    if (ESCAPED.test(text)) {
      const escaped = text.replaceAll(/[\t\n\\\0]/g, (character) => ESCAPES[character] ?? character)
      this.#ensure(1 + escaped.length * 3)
      this.#at += this.#buffer.write(escaped, this.#at, 'utf8')
    } else this.#at += this.#buffer.write(text, this.#at, 'utf8')
  }

  #ensure(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return
    const grown = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#at + bytes))
    this.#buffer.copy(grown, 0, 0, this.#at)
    this.#buffer = grown
  }
}

/** A text as a literal of SQL, for servers that do not allow LOAD DATA LOCAL. */
export function quoteText(text: string): string {
  return `'${text.replaceAll(/['\\\0\n\r\u001a]/g, (character) => LITERALS[character] ?? character)}'`
}

const LITERALS: Record<string, string> = {
  "'": "''",
  '\\': '\\\\',
  '\0': '\\0',
  '\n': '\\n',
  '\r': '\\r',
  '\u001A': '\\Z',
}
