/** Characters that a terminal interprets: control and direction characters, line separators. */
const UNSAFE_CHARACTERS = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g

/** Makes untrusted text, such as a key or a server message, safe to print on one line. */
export function toPrintable(text: string, charactersMax = 2_000): string {
  const cut = text.length <= charactersMax ? text : `${text.slice(0, charactersMax)}…`
  return cut
    .toWellFormed()
    .replace(UNSAFE_CHARACTERS, (char) =>
      char === '\n' || char === '\t' ? ' ' : `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
    )
}
